"""Files that survive crashes, other writers and other files."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cloakwork._files import new_part, write_durably
from cloakwork._method_cache import memoize


def test_several_writers_at_once_never_show_a_torn_file(tmp_path: Path) -> None:
    path = tmp_path / "state"
    texts = [bytes([48 + number]) * 100_000 for number in range(4)]

    def write(text: bytes) -> None:
        for _ in range(25):
            write_durably(path, text)

    path.write_bytes(texts[0])
    with ThreadPoolExecutor() as pool:
        writers = [pool.submit(write, text) for text in texts]
        while not all(writer.done() for writer in writers):
            assert path.read_bytes() in texts
        for writer in writers:
            writer.result()
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


def test_parts_of_other_files_stay(tmp_path: Path) -> None:
    others = [tmp_path / f".state{middle}.part" for middle in (".csv.12", ".999", f".csv.{'0' * 16}", f".{'1' * 16}")]
    for other in others:
        other.write_text("half")
    write_durably(tmp_path / "state", b"whole")
    assert all(other.exists() for other in others), "the last one may be of a writer that is not done"


def test_a_part_that_a_power_cut_left_long_ago_is_removed_with_what_is_in_it(tmp_path: Path) -> None:
    folder, recent = (tmp_path / f".s07.{digit * 16}.part" for digit in "12")
    for left in (folder, recent):
        left.mkdir()
        (left / "state.0").write_bytes(b"a key")
    os.utime(folder, (1, 1))
    assert new_part(tmp_path / "s07").parent == tmp_path
    assert list(tmp_path.iterdir()) == [recent]


def test_a_method_keeps_its_last_results_while_threads_share_it() -> None:
    class Squares:
        calls = 0

        @memoize(2)
        def of(self, number: int, power: int = 2) -> int:
            self.calls += 1
            return int(number**power)

    squares = Squares()
    assert [squares.of(number) for number in (3, 3, 4, 3)] == [9, 9, 16, 9]
    assert squares.of(3, 2) == 9, "a default and its value are the same"
    assert squares.calls == 2
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(squares.of, [number % 7 for number in range(20_000)]))
    assert results == [(number % 7) ** 2 for number in range(20_000)]

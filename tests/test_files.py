"""Files that survive crashes, other writers and other files."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cloakwork._files import KeptResults, write_durably
from cloakwork._method_cache import memoize
from cloakwork.errors import InputError


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


def open_results(path: Path) -> KeptResults[float]:
    return KeptResults(path, "name", "value", float, "another file")


def test_a_result_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    open_results(path).add("a", 1.0, 1.0)
    whole = path.read_text()
    for cut in range(1, len(whole)):
        path.write_text(whole + whole[:cut])
        assert open_results(path).known == {"a": 1.0}
        assert path.read_text() == whole


@pytest.mark.parametrize("text", ["notes", "notes\n", '{"name": 1}\n', "[1]\n", "7\n", "[" * 100_000 + "\n", '{"named'])
def test_another_file_is_refused_and_stays_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kept"
    path.write_text(text)
    with pytest.raises(InputError) as refusal:
        open_results(path)
    assert refusal.value.values == {"path": str(path)}
    assert path.read_text() == text


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

"""Faults made by hand, to see that the tests catch them: `python -m scripts.faults [--tests REVISION] [FILE...]`.

Each fault changes one place of the source in a temporary copy and runs the tests that should notice; they must fail.
With `--tests`, the tests are those of another revision. FILE selects the faults of files whose path contains it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
IGNORED = shutil.ignore_patterns(".git", ".venv", "out", "site-docs", ".mypy_cache", ".ruff_cache", ".hypothesis")

# file under src/cloakwork, and the tests that should notice: (old text, new text)
FAULTS: dict[tuple[str, str], list[tuple[str, str]]] = {
    ("sensor/device.py", "sensor/test_device.py"): [
        ("self._next += 1", "self._next += 0"),  # a counter is used again
        ("if not self._taken or counter", "if counter"),  # two messages in a slot
        ("state.key = ratchet(self._key)", "state.key = self._key"),  # the key of a past epoch stays
        ("self._move_on(counter + 1 if", "self._move_on(counter if"),  # a restored device repeats a number
        ("+ self._slots.window + 1", ""),  # a restored device does not wait
        ("if not retained or self._is_blocked(now):", "if False:"),  # a copy goes on
        ("numerator * b + denominator * a)", "numerator * b)"),  # rounding downwards
    ],
    ("sensor/device.py", "sensor/test_power_cuts.py"): [
        ("        self._save(state.counter + taken, now, offset)\n", "        state.counter += taken\n"),
    ],
    ("sensor/slots.py", "sensor/test_slots.py"): [
        ("self.used(slot) < self.allowed", "self.used(slot) <= self.allowed"),
        ("slot - self.window + 1\n", "slot - self.window + 2\n"),
    ],
    ("sensor/keystream.py", "sensor/test_keystream.py"): [
        (" + _number(epoch)", ""),
        ("bytes([b])", "bytes([0])"),  # the second block repeats the first
    ],
    ("sensor/table.py", "sensor/test_table.py"): [
        ("below * (1 - 2 * (word >> 127))", "below"),
        ("<= goal)", "< goal)"),
    ],
    ("sensor/wire.py", "sensor/test_wire.py"): [
        (' or (text[0] == "0" and text != "0")', ""),
        ('else "alarm"', 'else "again"'),
    ],
    ("device/c/cloakwork.c", "device/test_c_device.py"): [("ratchet(d->key, d->state.key)", "(void)0")],
    ("device/provisioning.py", "device/test_provision.py"): [
        ("blocked = plan.schedule.window_slots + 1", "blocked = 0")
    ],
    ("privacy/calibration.py", "attacks/test_neighbours.py"): [
        ("return alpha * family.steepest().value", "return 0.9 * alpha * family.steepest().value"),
        (" + math.sqrt(float(((added / sigma) ** 2).sum()))", ""),  # rounding costs nothing
    ],
    ("privacy/cloak.py", "privacy/test_cloak.py"): [
        ("        self._ledger.spend(steps.size // self.physics.sensors)\n", ""),
    ],
    ("privacy/cloak.py", "auditing/test_audit_own.py"): [("(whole + drawn)", "(whole + np.rint(0.8 * drawn))")],
    ("privacy/ledger.py", "privacy/test_cloak.py privacy/test_flip.py"): [("number > left:", "number > left + 1:")],
    ("privacy/flip.py", "privacy/test_flip.py"): [("_window * self.sensors\n", "_window\n")],
    ("privacy/design.py", "privacy/test_design.py"): [
        ("np.rint(TABLES_PER_OCTAVE * np.log2(sigma / step)) / TABLES_PER_OCTAVE", "np.log2(sigma / step)"),
    ],
    ("physics/tolerance.py", "physics/test_tolerance.py"): [
        ("Slope(steepest.value * (1 + self.tolerance.gain), ", "Slope(steepest.value, "),
        (".max(axis=0) / 2 if", ".max(axis=0) * 0 if"),  # models between two evaluated ones
        ("_by_doors(m) if self.tolerance.doors else", "_by_doors(m) if False else"),
    ],
    ("physics/moves.py", "physics/test_base.py"): [
        ("largest_of_each(abs(piece))", "largest_of_each(piece)"),
        ("(norms.max(initial=0.0) + slack)", "float(np.median(norms))"),
    ],
    ("physics/space.py", "physics/test_space.py"): [
        ("np.lexsort((self.lengths, ", "np.lexsort((-self.lengths, "),  # the longer of two ways counts
    ],
    ("physics/drift.py", "site/test_site_drift.py"): [("np.sqrt(1 - fade**2) * fresh[k]", "(1 - fade) * fresh[k]")],
    ("site/build.py", "site/test_following.py"): [
        ('"stay": "mean_sit_s", "walk": "mean_walk_s"', '"walk": "mean_sit_s", "stay": "mean_walk_s"'),
    ],
    ("site/schedule.py", "site/test_schedule.py"): [
        ("(whole + late_ms + 2 * wrong_ms) // allowed", "whole // allowed")
    ],
    ("series/counts.py", "series/test_tally.py"): [
        ("left -= counting[k]", "left -= counting[k] - 1"),
        ("abs(places[k] - used[j]) < separation", "abs(places[k] - used[j]) < separation - 1"),
        ("np.lexsort((ranks, people))", 'np.argsort(people, kind="stable")'),  # the first in the file count
    ],
    ("series/stream.py", "series/test_stream.py"): [("            if self._open:\n", "            if False:\n")],
    ("series/release_noise.py", "series/test_release.py"): [
        ("table_ratio(shift / mu)", "table_ratio(0.8 * shift / mu)")
    ],
    ("auditing/betting.py", "auditing/test_parts.py"): [("(1 - deltas) / scale", "1 / scale")],
    ("auditing/independence.py", "auditing/test_audit_independence.py"): [
        ("if len(again) and chance", "if False and chance"),  # noise that comes again
        (
            "for before in (0, 1):\n                products = fft",
            "for before in (now,):\n                products = fft",
        ),
    ],
    ("auditing/audit.py", "auditing/test_audit_independence.py"): [
        ("violation = bool(dependence), ", "violation = False, ")
    ],
    ("keys/unveil.py", "keys/test_unveil.py"): [
        ("refused | (rows.time > self._until[streams])", "refused | (rows.time > 2**62)"),
        ("conflict[which] = noted == _CONFLICT", "conflict[which] = False"),
    ],
    ("keys/key_file.py", "keys/test_key_file.py keys/test_site_keys.py"): [
        ("mode & 0o077", "mode & 0o007"),
        ("        fcntl.flock(handle, fcntl.LOCK_EX)\n", ""),
    ],
    ("keys/key_ring.py", "keys/test_key_file.py"): [("before.number < after.number", "True")],
    ("collect/storage/readings.py", "collect/test_store_readings.py collect/test_store_results.py"): [
        ("stored[key] == row[3:5]", "stored[key][0] == row[3]"),  # another value is no alarm
        ("frames.readings + excluded.readings", "frames.readings"),  # a late reading is forgotten
    ],
    ("collect/storage/results.py", "collect/test_store_results.py"): [
        ("body = excluded.body, map = excluded.map", "body = excluded.body"),  # a later result keeps the old map
        ("AND excluded.settled >= results.settled", "AND 1 = 1"),
    ],
    (
        "collect/storage/collector_store.py",
        "collect/test_store_erasing.py collect/test_store_erasing_races.py",
    ): [
        (
            "                if not times:\n",
            "                if not times or readings:\n",
        ),  # it ends early
    ],
    ("collect/intake.py", "collect/test_intake.py"): [
        ("reasons = [REASONS[status]] if status in REASONS else", "reasons = [] if status in REASONS else"),
    ],
    ("collect/service.py", "collect/test_subscriber.py"): [('(["+"] if sites is None else sites)', '["+"]')],
    ("collect/storage/tokens.py", "collect/test_store_tokens.py"): [
        ("WHERE digest = :digest AND revoked IS NULL", "WHERE digest = :digest")
    ],
    (
        "collect/api/access_control.py",
        "collect/test_api_roles.py collect/test_api_sessions.py",
    ): [
        ("if caller.role not in roles:", "if False:"),
        ("if foreign or", "if"),  # changes that another website asks for
        ("self.token.site in {None, site}", "True"),
        ("self._codes.pop(_hash(code), None)", "self._codes.get(_hash(code))"),  # a code works twice
        ("TTLCache(MAX_SESSIONS, SESSION_S, ", "TTLCache(MAX_SESSIONS, 10 * SESSION_S, "),  # sessions without an end
        ("is_open and self._store.tokens.is_valid(caller.token.id)", "is_open"),  # of a revoked token
    ],
    ("recovery/basis_pursuit.py", "recovery/test_basis_pursuit.py"): [
        ("special.chdtri(rank, 1 - FITS)", "special.chdtri(rank, FITS)"),
    ],
    ("recovery/goodness_of_fit.py", "recovery/test_tracker.py"): [("worst_p_value < OUTLYING", "worst_p_value < 0")],
    ("recovery/goodness_of_fit.py", "recovery/test_fit.py recovery/test_tracker.py recovery/test_drift.py"): [
        ("set_aside=tuple(sorted(excluded - missing))", "set_aside=tuple(sorted(excluded))"),
        ("inflation *= 2.0 **", "inflation *= 1.0 **"),
    ],
    ("recovery/posterior.py", "recovery/test_point_sources.py"): [
        ("held = density >= _cut", "held = density > 2 * _cut")
    ],
    ("recovery/origin_columns.py", "recovery/test_origin.py"): [
        ("linear = factor / graph.gain * graph", "linear = factor * graph"),
        ("near_columns(piece, drop)", "near_columns(piece, 30 * drop)"),
    ],
    ("contacts/communities.py", "contacts/test_contacts.py"): [
        ("        best = _refined(table, best)\n", "        pass\n"),
    ],
    ("auditing/report_values.py", "auditing/test_report_values.py auditing/test_recordings_plainly.py"): [
        ("            self.whole = False\n", "            pass\n"),
        ("return [self._word(line)] * width", "return [self._word(line)]"),
    ],
    ("accuracy/emd.py", "accuracy/test_emd.py"): [("scaled / scaled.sum()", "scaled")],
    ("accuracy/bayes_risk.py", "accuracy/test_bayes_risk.py"): [("(below, 1 - below)", "(below, 1.2 - below)")],
    ("accuracy/cramer_rao.py", "accuracy/test_cramer_rao.py"): [
        ("np.outer(free, free), inverse", "np.outer(free, free), 2 * inverse")
    ],
}


def copied(folder: Path, revision: str | None) -> None:
    """Copy the tree with its compiled loops, and the tests of a revision if one is given."""
    shutil.copytree(ROOT, folder, symlinks=True, ignore=IGNORED)
    if revision is not None:
        shutil.rmtree(folder / "tests")
        packed = subprocess.run(["git", "archive", revision, "tests"], cwd=ROOT, check=True, capture_output=True)  # noqa: S603, S607
        subprocess.run(["tar", "-x"], cwd=folder, check=True, input=packed.stdout)  # noqa: S607


def notice(folder: Path, tests: str) -> bool:
    """Whether these tests of a copy fail."""
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    paths = os.environ | {"PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder}", "OPENBLAS_NUM_THREADS": "1"}
    files = [f"tests/{name}" for name in tests.split()]
    try:
        done = subprocess.run(  # noqa: S603
            [*words, *files], cwd=folder, env=paths, capture_output=True, text=True, check=False, timeout=900
        )
    except subprocess.TimeoutExpired:
        return True
    if done.returncode > 1:
        raise SystemExit(done.stdout + done.stderr)
    return done.returncode == 1


def main() -> None:
    """Try the faults, and print which ones the tests catch."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tests", metavar="REVISION", help="run the tests of this revision")
    parser.add_argument("files", nargs="*")
    given = parser.parse_args()
    tried = caught = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "tree"
        copied(folder, given.tests)
        for (place, tests), changes in FAULTS.items():
            file = folder / "src" / "cloakwork" / place
            whole = file.read_text(encoding="utf-8")
            for old, new in changes if not given.files or any(part in place for part in given.files) else []:
                if whole.count(old) != 1:
                    raise SystemExit(f"{place} has {old!r} {whole.count(old)} times: bring the faults up to date.")
                file.write_text(whole.replace(old, new), encoding="utf-8")
                noticed = notice(folder, tests)
                file.write_text(whole, encoding="utf-8")
                tried, caught = tried + 1, caught + noticed
                sys.stdout.write(f"{'caught' if noticed else 'NOT CAUGHT'}: {place}: {old.strip()} -> {new.strip()}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{caught} of {tried} faults caught\n")
    sys.exit(caught < tried)


if __name__ == "__main__":
    main()

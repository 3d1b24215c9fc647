"""Bad input of every command: exit code 2, one clear line on standard error, no traceback, and nothing is written."""

import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import SITE, Run

FILES = {
    "site.toml": SITE.encode(),
    "empty.toml": b"",
    "picture.toml": b"\x89PNG\r\n\x1a\n\x00\xff",
    "zero.toml": b"\x00\x01\x02",
    "alpha.toml": SITE.replace("alpha = 0.02", "alpha = 0").encode(),
    "nan.toml": SITE.replace("T = 0.02", "T = nan").encode(),
    "syntax.toml": SITE.replace("T = 0.02", "T =").encode(),
    "good.csv": b"time,sensor,seq,steps\n" + b"".join(b"0,s%d,0,%d\n" % (k, k) for k in range(1, 7)),
    "empty.csv": b"",
    "picture.csv": b"\x89PNG\r\n\x1a\n\x00\xff",
    "header.csv": b"time,sensor,seq,steps\n",
    "unknown.csv": b"time,sensor,seq,steps\n0,z,0,1\n",
}
MISSING = "No such file or directory"
PERIOD = "--since 2020-01-01"
BAD = [  # a command, and what the first line of its error says
    *((f"plan {name}.toml --no-simulation", said) for name, said in (
        ("empty", "empty.toml, line 1: name: this key is missing"),
        ("picture", "not a text file in UTF-8"),
        ("zero", "not valid TOML"),
        ("alpha", "line 12: privacy.alpha = 0"),
        ("nan", "line 6: physics.T = nan"),
        ("syntax", "line 6"),
        ("none", f"none.toml: {MISSING}. Write an example with: cloakwork init"),
    )),
    ("plan --json none.toml", f"none.toml: {MISSING}"),
    ("plan site.toml --sweep --try 'alpha=0.1;0.2'", "--try alpha=0.1;0.2"),
    ("plan site.toml --sweep --try readings=2.5", "--try readings=2.5"),
    ("plan site.toml --sweep --need 'kitchen 90%'", "kitchen 90%"),
    ("plan site.toml --sweep --out plan.json", "--sweep with --out"),
    ("plan site.toml --need 'room 95%'", "add --sweep"),
    ("plan site.toml --no-simulation --picture a.png", "is no floor plan"),
    ("plan .", "Is a directory"),
    ("init site.toml", "already exists"),
    ("sheet site.toml --out s.html --language xx", "--language xx"),
    ("sheet site.toml --out s.doc", "--out s.doc: give a name that ends in .html"),
    ("sheet site.toml --out s.html", "there is no frozen plan yet"),
    ("calibrate site.toml --walk site.toml --readings none.csv", f"none.csv: {MISSING}"),
    ("calibrate site.toml --walk good.csv --readings good.csv --write --out b.toml", "give either --write"),
    ("simulate site.toml --out a.csv --source kitchen", "--source kitchen: 'kitchen' is not a position"),
    ("simulate site.toml --out a.csv --source 0.5:heavy", "--source 0.5:heavy: the weight 'heavy' is not a number"),
    ("simulate site.toml --out a.csv --source 0.5:inf", "give a finite weight"),
    ("simulate site.toml --out a.csv --source 0.5:", "the weight '' is not a number"),
    ("simulate site.toml --out a.csv --source nan", "--source nan: give one number"),
    ("simulate site.toml --out a.csv --source 1.7", "--source 1.7 is outside"),
    ("simulate site.toml --out a.csv --source 0.1,0.2", "give one number"),
    ("simulate site.toml --out no/a.csv", "there is no folder no"),
    ("simulate site.toml --out a.xlsx", "--out a.xlsx: give a name that ends in .csv"),
    ("recover site.toml none.csv --alone", f"none.csv: {MISSING}"),
    ("recover site.toml empty.csv", "empty.csv is empty"),
    ("recover site.toml picture.csv", "the first line is not UTF-8 text"),
    ("recover site.toml header.csv", "no usable reading in 0 rows"),
    ("recover site.toml unknown.csv", "no usable reading in 1 rows; row 2: unknown sensor 'z'"),
    ("recover site.toml .", "a folder"),
    ("recover site.toml good.csv --out a.xlsx", "or the name of a folder"),
    ("recover site.toml good.csv --plot a.docx", "--plot a.docx: give a name that ends in .png, .svg, .pdf"),
    ("recover site.toml good.csv --plan none.json", f"none.json: {MISSING}. Write the plan with"),
    ("recover site.toml good.csv --scheduler tcp://x:1 --out a.csv", "--scheduler needs --out"),
    ("recover site.toml good.csv --from-store site.toml", "give either files of readings, or --from-store"),
    ("recover site.toml", "give either files of readings, or --from-store"),
    (f"recover site.toml good.csv {PERIOD}", "need --from-store"),
    ("recover site.toml --from-store none.db", f"none.db: {MISSING}. Name the store"),
    ("unveil site.toml good.csv --keys none.json --out a.csv", f"none.json: {MISSING}. Create it with"),
    ("series none.csv", f"none.csv: {MISSING}"),
    ("audit readings none.csv good.csv --epsilon 1", f"none.csv: {MISSING}"),
    ("audit readings good.csv good.csv --epsilon 1", "is given twice"),
    ("audit command false --epsilon 1", "code 1"),
    ("audit command yes --epsilon 1 --reports 10", "--reports 10"),
    ("audit command yes --epsilon 1 --confidence 1", "--confidence"),
    ("audit command yes --epsilon 1 --delta 1", "Give a number below 1"),
    ("audit command yes --epsilon 1 --html no/page.html", "--html no/page.html: there is no folder no"),
    ("audit command yes --epsilon 1 --html good.csv", "ends in .html"),
    ("keys list none.json", f"none.json: {MISSING}"),
    ("provision site.toml --id s1", "there is no frozen plan yet"),
    ("sensor site.toml --source simulated", "--id: give the id"),
    ("sensor site.toml --source simulated --id s2", "not provisioned yet"),
    ("sensor site.toml --source simulated --id s99", "has no such sensor"),
    ("sensor . --source simulated", "there is no device.json here"),
    ("collect none.toml", f"none.toml: {MISSING}"),
    ("export hall --out x.csv --store none.db", f"none.db: {MISSING}"),
    ("erase hall --yes --store none.db", f"none.db: {MISSING}"),
    ("token list --store none.db", f"none.db: {MISSING}"),
    ("token revoke abc --store none.db", f"none.db: {MISSING}"),
    ("token new --role device --site hall", "give --site and --id"),
    ("token new --role analyst --id s1", "--id is for device tokens"),
    *((f"recover site.toml --from-store site.toml --since {text}", f"'--since': {text}: {said}") for text, said in (
        ("yesterday", "give a date such as 2026-11-15"),
        ("253402300800000", "give a date such as 2026-11-15"),
        ("1969-12-31T23:59:59", "times before 1970"),
        ("0001-01-01", "times before 1970"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("words", "said"), BAD)
def test_bad_input_is_refused(words: str, said: str, here: Path, run: Run) -> None:
    for name, content in FILES.items():
        Path(name).write_bytes(content)
    done = run(*shlex.split(words))
    first, *others = done.err.splitlines()
    assert (done.code, done.out) == (2, "")
    if first.startswith("Usage: "):  # the value of an option is not of its type
        first, others = others[-1], []
    assert first.startswith(("cloakwork: ", "Error: "))
    assert said in first
    assert not others or words.startswith("plan")  # every key of a site file that is wrong
    assert "Traceback" not in done.err
    assert {path.name: path.read_bytes() for path in here.iterdir()} == FILES

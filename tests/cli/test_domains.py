"""`rfmdp domains`."""

import json

from rfmdp.cli.main import run as rfmdp
from rfmdp.domains import DOMAINS


def test_domains_on_the_command_line(capsys):
    """`rfmdp domains` lists sizes; of one domain all constants, or the text."""
    assert rfmdp(["domains"]) == 0
    assert "21,694,720" in capsys.readouterr().out
    assert rfmdp(["domains", "chain"]) == 0
    assert "--const M=10,slow=0.4,fast=0.6,as_published=true" in capsys.readouterr().out
    assert rfmdp(["domains", "chain", "--text"]) == 0
    assert "module chain1" in capsys.readouterr().out
    assert rfmdp(["domains", "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {record["domain"] for record in records} == set(DOMAINS)
    assert rfmdp(["domains", "moon"]) == 1

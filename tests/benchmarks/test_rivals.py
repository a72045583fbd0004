"""Networks side by side: every row has its ratio, and its share of what the machine could do."""

import rivals


def test_a_table_of_rivals_has_ratios_and_shares_of_sgemm(monkeypatch):
    saved = {}
    monkeypatch.setattr(rivals, "CASES", ((True, 1), (False, 2)))
    monkeypatch.setattr(rivals, "NETWORKS", ("rotmnist_positional", rivals.RIVAL))
    monkeypatch.setattr(rivals, "sgemm_peak", lambda device: 1e15)
    monkeypatch.setattr(rivals, "save", lambda name, command, body: saved.update({name: body}))
    rivals.main(1)
    head, _, *rows = [[c.strip() for c in line.split("|")[1:-1]] for line in saved["rivals_cpu"].splitlines()[2:]]
    assert len(rows) == 4 and all(len(row) == len(head) for row in rows)
    cells = [dict(zip(head, row, strict=True)) for row in rows]
    assert all(row["against R4_CNN"] == "1.00×" for row in cells if row["network"] == f"`{rivals.RIVAL}`")
    assert all(row["of sgemm"].endswith("%") and float(row["of sgemm"][:-1]) < 10 for row in cells)

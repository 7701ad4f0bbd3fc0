"""The schema of the database, as numbered steps. A step that has run anywhere is never changed: add another one."""

from importlib import resources


def steps():
    """(number, name, SQL) of each step, in order."""
    found = []
    for file in resources.files(__name__).iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            found.append((int(number), name, file.read_text(encoding="utf-8")))
    return sorted(found)


def migrate(connection):
    """Bring a database up to date. Returns the names of the steps that ran."""
    connection.execute("CREATE TABLE IF NOT EXISTS migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    done = {number for (number,) in connection.execute("SELECT number FROM migration")}
    ran = []
    for number, name, sql in steps():
        if number not in done:
            connection.executescript(sql)
            connection.execute("INSERT INTO migration VALUES (?, ?)", (number, name))
            ran.append(name)
    connection.commit()
    return ran

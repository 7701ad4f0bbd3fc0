"""Shapes of changes in technical work, by the fourth author, who knew neither the digest nor other templates."""

from __future__ import annotations

from retention.shapes import Shape, shape

__all__ = ["BLIND_FOURTH_WORK"]

_CODE = (
    shape(
        "change",
        "port taken on ci",
        "the dev server of {service} listens on {port}, just hardcode that in the e2e config",
        "ugh {port} is taken on the ci boxes. pls start {service} on {port2}",
        keep=("{service}", "{port2}"),
        old=("{service}", "{port}", "listens"),
    ),
    shape(
        "change",
        "store after profiling",
        "Client state goes through {library}, please add no second store.",
        "I spent the morning with the profiler and {library} re-renders the whole tree on each keystroke. We keep "
        "client state in {library2}, port the slices one by one.",
        keep=("state", "{library2}"),
        old=("state", "goes", "{library}"),
    ),
    shape(
        "change",
        "frozen target",
        "open the PR against {branch} when youre done",
        "next:oh that one is frozen since yesterday, {branch2} is where the PR goes",
        keep=("{branch2}", "PR"),
        old=("PR", "{branch}"),
    ),
    shape(
        "change",
        "module name collides",
        "Put the retry logic in a new module, {file}, and keep it free of imports from the web layer.",
        "{person} noticed in review that the name collides with a package on PyPI. The module with the retry logic "
        "lives at {file2} as of my last commit.",
        keep=("retry", "module", "{file2}"),
        old=("retry", "module", "{file}"),
    ),
    shape(
        "change",
        "vendored code is ours",
        "never touch {path}, the vendor regenerates it every night",
        "contract with the vendor ended. {path} is our code, edit it like everything else",
        keep=("{path}", "edit"),
        old=("{path}", "never", "touch"),
    ),
    shape(
        "change",
        "mail about a limit",
        "{field} in {config} stays at {count}, the ops people insist",
        "From: {person}\nTo: platform\nSubject: tonight's deploy\n\nHi,\nops signed off on the larger value. Please "
        "see to it that {field} in {config} reads {count2} before we deploy.\n\nThanks",
        keep=("{field}", "{config}", "{count2}"),
        old=("{field}", "{config}", "{count}"),
    ),
    shape(
        "change",
        "smaller diff",
        "run the linter over the whole repo and fix whatever it finds",
        "nobody can review a diff of that size.. linter fixes in {path}, the other folders another day",
        keep=("linter", "{path}"),
        old=("linter", "whole", "repo"),
    ),
    shape(
        "change",
        "export dropped by product",
        "Add CSV export of {topic} to the admin page, it's {ticket} on the board.",
        "{ticket} is off the board, product has no use for a CSV of {topic} when there is the API.",
        keep=("{ticket}", "off"),
        old=("add", "CSV", "{topic}"),
    ),
    shape(
        "change",
        "nightly flag comes back",
        "{flag} is mandatory for the nightly run",
        "since {person}'s patch the nightly runs without {flag}, remove it from the script",
        "patch got reverted over the weekend. nightly needs {flag} again",
        keep=("nightly", "needs", "{flag}"),
        old=("nightly", "without", "{flag}"),
    ),
    shape(
        "change",
        "nobody told us",
        "{service} is on node {version}, so no fancy syntax",
        "ok funny story, i was chatting with the infra folks about the base images and it seems {service} has been "
        "running node {version2} since spring and nobody told us, so write for that",
        keep=("{service}", "{version2}"),
        old=("{service}", "{version}"),
    ),
    shape(
        "change",
        "standup notes",
        "{ticket} is with {person}, she starts on it after lunch",
        "notes from standup:\n- {person2} takes {ticket} so {person} can look after the release\n- demo is upstairs",
        keep=("{person2}", "takes", "{ticket}"),
        old=("{ticket}", "with", "{person}"),
    ),
    shape(
        "change",
        "freeze slid",
        "Code freeze for {version} is on {date}.",
        "did anyone mention to you that the freeze for {version} slid to {date2}? pls plan the tasks accordingly",
        keep=("freeze", "{version}", "{date2}"),
        old=("freeze", "{version}", "{date}"),
    ),
)
"""People with a coding agent."""

_MACHINES = (
    shape(
        "change",
        "leak elsewhere",
        "assistant:The memory leak comes from {service}: it never closes its sockets.",
        "assistant:I went through the heap dump of the weekend once more. The memory leak sits in {service2}, whose "
        "cache has no upper bound. The open sockets are a symptom.",
        keep=("leak", "{service2}"),
        old=("leak", "{service}"),
    ),
    shape(
        "change",
        "which one is primary",
        "assistant:Connected. The primary is {host}, so I run the migration there.",
        "assistant:Hm, pg_is_in_recovery() says true on this machine. {host2} turns out to be the primary, so I "
        "connect to that one before I migrate anything.",
        keep=("{host2}", "primary"),
        old=("{host}", "primary"),
    ),
    shape(
        "change",
        "credit notes forgotten",
        "assistant:Total spend with {company} this year is {money}, about the same as last year.",
        "assistant:Before I send the sheet: I had not subtracted the credit notes. Net of them, spend with {company} "
        "comes to {money2}.",
        keep=("spend", "{company}", "{money2}"),
        old=("spend", "{company}", "{money}"),
    ),
    shape(
        "change",
        "replicas in json",
        'tool:{{"service": "{service}", "replicas": {small}, "healthy": true}}',
        'tool:{{"service": "{service}", "replicas": {small2}, "healthy": true}}',
        keep=("{service}", "replicas", "{small2}"),
        old=("{service}", "replicas", "{small}"),
    ),
    shape(
        "change",
        "migration log",
        "tool:09:14:02 INFO connect ok\n09:14:03 WARN migration of {table} is PENDING, waiting for lock",
        "tool:09:51:40 INFO connect ok\n09:51:48 INFO migration of {table} DONE, {count} rows copied",
        keep=("{table}", "done"),
        old=("{table}", "pending"),
    ),
    shape(
        "change",
        "coverage table",
        "tool:Package          Stmts   Miss\n------------------------------\n{service}   2210   {count}",
        "tool:Package          Stmts   Miss\n------------------------------\n{service}   2210   {count2}",
        keep=("{service}", "{count2}"),
        old=("{service}", "{count}"),
    ),
    shape(
        "change",
        "rounding test passes",
        "tool:FAILED tests/test_{word}.py::test_rounding - assert 0.30000000000000004 == 0.3",
        "tool:tests/test_{word}.py::test_rounding PASSED [100%]",
        keep=("test_{word}.py", "passed"),
        old=("test_{word}.py", "failed"),
    ),
    shape(
        "change",
        "bisect without the flaky test",
        "tool:{hash} is the first bad commit\nAuthor: {person}",
        "tool:replaying bisect log, flaky test skipped\n{hash2} is the first bad commit\nAuthor: {person2}",
        keep=("{hash2}", "bad"),
        old=("{hash}", "bad"),
    ),
    shape(
        "change",
        "approver left",
        "system:Deployments of {service} require the approval of {person}.",
        "system:{person} has left the company. {person2} approves deployments of {service}.",
        keep=("{person2}", "approves", "{service}"),
        old=("{service}", "approval", "{person}"),
    ),
)
"""What agents, tools and operators say."""

_DATA = (
    shape(
        "change",
        "audit grows",
        "For the audit you only have to look at {table}.",
        "The regulator wants to see {table2} as well. So the audit is about both tables, {table} and {table2}.",
        keep=("audit", "both", "{table2}"),
        old=("audit", "only", "{table}"),
    ),
    shape(
        "change",
        "active user",
        "active user on the {city} dashboard = anyone with a login in the last month",
        "Memo of the metrics council: on the {city} dashboard, an active user is somebody who paid for an order within "
        "a fortnight.",
        keep=("active", "{city}", "paid"),
        old=("active", "{city}", "login"),
    ),
    shape(
        "change",
        "test accounts in churn",
        "churn in {month} came out at {percent} percent, put it in the summary for {person}",
        "I forgot to filter the test accounts out, silly me. With them gone churn in {month} is {percent2} percent.",
        keep=("churn", "{month}", "{percent2}"),
        old=("churn", "{month}", "{percent}"),
    ),
    shape(
        "change",
        "second reviewer",
        "In the analysis we exclude participants from {city}, which leaves n = {count}.",
        "Reviewer 2 has a point, there is no reason to drop {city}. The analysis includes them, n = {count2}.",
        keep=("{city}", "includes", "{count2}"),
        old=("exclude", "{city}", "{count}"),
    ),
    shape(
        "change",
        "retracted paper",
        "cite {family} for the decay constant pls",
        "wait, the journal pulled the {family} paper?! then our source for the decay constant is {family2}",
        keep=("{family2}", "decay"),
        old=("cite", "{family}", "decay"),
    ),
    shape(
        "change",
        "raw files in a ramble",
        "Some context before you start. <long> The raw files are in {folder}, one per day. <long>",
        "<long> Oh, and the raw files sit under {folder2} since we moved buckets, the names are the same. <long>",
        keep=("raw", "{folder2}"),
        old=("raw", "{folder}"),
    ),
)
"""Analysts and researchers."""

BLIND_FOURTH_WORK: tuple[Shape, ...] = (*_CODE, *_MACHINES, *_DATA)

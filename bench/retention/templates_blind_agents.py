"""Shapes of changes in days with a coding agent, by an author who knew neither the digest nor other templates."""

from __future__ import annotations

from retention.shapes import NOT, Shape, shape

__all__ = ["BLIND_AGENTS"]

BLIND_AGENTS: tuple[Shape, ...] = (
    shape(
        "change",
        "cause not after all",
        "First finding on {ticket}: the cause is the cache, it serves entries that are hours old.",
        "<long> The cause of {ticket} was not the cache after all; it was the retry loop, it resends the old payload.",
        keep=("{ticket}", "retry|retries|retrying"),
        old=("{ticket}", "cache"),
    ),
    shape(
        "change",
        "suite rerun",
        "tool:pytest tests/{service}: {small} failures",
        "Reran the {service} tests with the fixture fix: {small2} failures now.",
        keep=("{service}", "{small2}", "fail*"),
        old=("{service}", "{small}", "fail*"),
    ),
    shape(
        "change",
        "owner says too short",
        [
            "We delete the {topic} after {small} days.",
            "Retention for the {topic} is {small} days, please write that into the job.",
        ],
        [
            "{person} says {small} days is too short for the {topic}, {small2}.",
            "Talked to {person} at lunch. {small} days is too short for the {topic} by a wide margin, the answer "
            "was {small2}, so do that.",
        ],
        keep=("{topic}", "{small2}"),
        old=("{topic}", "{small}", "days"),
    ),
    shape(
        "change",
        "newer value no signal",
        "The pool size of {service} is {count}.",
        "<long> Pool size of {service}: {count2}. The chart in the readme takes it from there.",
        keep=("{service}", "pool", "{count2}"),
        old=("{service}", "pool", "{count}"),
    ),
    shape(
        "change",
        "done as asked",
        "{field} in {config} is set to {count}.",
        "assistant:Done as you asked, {field} in {config} is {count2}.",
        keep=("{field}", "{count2}"),
        old=("{field}", "{count}"),
    ),
    shape(
        "change",
        "todo done",
        "Still open on the list: the pagination of the {topic} endpoint.",
        "That one is done, I mean the pagination of the {topic} endpoint. Next is the error page.",
        keep=("{topic}", "pagina*", "done|finished|complete*|merged|implemented"),
        old=("{topic}", "pagina*", "open|todo|pending|remain*"),
    ),
    shape(
        "change",
        "plan dropped half way",
        "We are moving the {service} data to Cassandra, the copy job runs over the weekend.",
        "We gave up on this half way, the copy never caught up with the writes. The {service} data lives in "
        "Postgres for good.",
        keep=("{service}", "postgres*"),
        old=("{service}", "cassandra"),
    ),
    shape(
        "change",
        "benchmark measured again",
        "tool:bench {service} p95={count} ms",
        "assistant:The first measurement had the antivirus scan in it. Measured again on the idle box, the p95 of "
        "{service} comes out at {count2} ms.",
        keep=("{service}", "p95", "{count2}"),
        old=("{service}", "p95", "{count}"),
    ),
    shape(
        "change",
        "deadline moved out",
        "Code freeze for {company} is on {date}.",
        "Their legal team needs more time, which gives us some air: code freeze for {company} slips to {date2}.",
        keep=("{company}", "freeze", "{date2}"),
        old=("{company}", "freeze", "{date}"),
    ),
    shape(
        "change",
        "owner took over",
        "{person} owns {service}, send the pull requests there.",
        "{person} starts parental leave this week. {person2} has taken over {service}.",
        keep=("{service}", "{person2}"),
        old=("{service}", "{person}", "own*"),
    ),
    shape(
        "change",
        "port review comment",
        "{service} listens on {port}.",
        "Review comment from {person} on that line: {port} belongs to the metrics agent. Fixed in the same pull "
        "request, "
        "{service} listens on {port2}.",
        keep=("{service}", "{port2}"),
        old=("{service}", "{port}"),
    ),
    shape(
        "change",
        "rebased onto",
        "All work on the {topic} page goes to {branch}.",
        "assistant:I rebased the {topic} page onto {branch2} and deleted {branch}, everything further on it is "
        "pushed there.",
        keep=("{topic}", "{branch2}"),
        old=("{topic}", "{branch}"),
    ),
    shape(
        "change",
        "support wrote back",
        "According to their docs the {company} API allows {count} requests per minute.",
        "Support wrote back and the docs are two years behind. The {company} API allows {count2} requests per minute.",
        keep=("{company}", "{count2}", "request*|minute|rpm"),
        old=("{company}", "{count}", "request*|minute|rpm"),
    ),
    shape(
        "change",
        "version breaks build",
        "Pin {library} to {version} everywhere.",
        "{library} {version} doesn't compile on the arm runners. I had to bump the pin, {library} {version2} it is.",
        keep=("{library}", "{version2}"),
        old=("{library}", "{version}", "pin*"),
    ),
    shape(
        "change",
        "flag flipped",
        "{flag} is disabled in production.",
        "As of this morning's release {flag} is enabled in production, and the error rate stays flat.",
        keep=("{flag}", "production|prod|live", "enabled|active|activated"),
        old=("{flag}", "production|prod|live", "disabled|inactive|off"),
    ),
    shape(
        "change",
        "git mv",
        "The {topic} handlers live in {path}.",
        "tool:$ git mv {path} {path2} && git commit -m 'relocate {topic} handlers to {path2}'",
        keep=("{topic}", "handler*", "{path2}"),
        old=("{topic}", "handler*", "{path}"),
    ),
    shape(
        "change",
        "order other way around",
        "Deployment order for {ticket}: {service} goes out first.",
        "For {ticket} it has to be the other way around, the migration sits in the second package. So {service2} "
        "goes out first.",
        keep=("{service2}", "first"),
        old=("{service}", "first"),
    ),
    shape(
        "change",
        "env variable",
        "assistant:{service} reads its connection string from APP_{word}_URL.",
        "Ops set other names on the cluster and won't touch them, so I adapted the loader: the variable that "
        "{service} reads "
        "is APP_{word2}_URL.",
        keep=("{service}", "APP_{word2}_URL"),
        old=("{service}", "APP_{word}_URL"),
    ),
    shape(
        "change",
        "mistyped",
        "The pager number for {service} ends in {count}.",
        "Sorry, fat fingers earlier, I swapped two lines of the sheet: the pager number for {service} ends in "
        "{count2}.",
        keep=("{service}", "pager", "{count2}"),
        old=("{service}", "pager", "{count}"),
    ),
    shape(
        "change",
        "user contradicts agent",
        "assistant:From the imports I gather that {service} uses {library} for its background jobs.",
        "Nope, those imports are dead code. Look into the lockfile, the background jobs of {service} use {library2}.",
        keep=("{service}", "{library2}"),
        old=("{service}", "{library}"),
    ),
    shape(
        "change",
        "rolled back",
        "{service} runs {version} in production since noon.",
        "The on-call rolled {service} back at night because of the memory leak, production is at {version2}.",
        keep=("{service}", "{version2}", "production|prod|live"),
        old=("{service}", "{version}", "production|prod|live"),
    ),
    shape(
        "change",
        "approval lifted",
        "Merging into {branch} needs a sign-off by {person}.",
        "The audit is over. You can merge into {branch} without a sign-off by {person} from today.",
        keep=("{branch}", "{person}", NOT + "|lifted"),
        old=("{branch}", "{person}", "needs|need|requires|require|required|needed"),
    ),
    shape(
        "change",
        "budget signed",
        "Monthly budget for the {city} cluster: {money} euros.",
        "The finance mail arrived with the signed sheet. They cut it, {money2} euros is the monthly budget for "
        "the {city} "
        "cluster.",
        keep=("{city}", "budget", "{money2}"),
        old=("{city}", "budget", "{money}"),
    ),
    shape(
        "change",
        "takes back hypothesis",
        "assistant:The test in {file} is red because of the timezone of the runner.",
        "assistant:I take that back about {file}, with the zone pinned it fails just the same. The test in "
        "{file} is red "
        "because of the random seed.",
        keep=("{file}", "seed*"),
        old=("{file}", "timezone"),
    ),
    shape(
        "change",
        "cron collision",
        [
            "The job that mails the {topic} starts at {clock}.",
            "Cron for the {topic} mail: it starts at {clock} every night.",
        ],
        [
            "That collides with the backup. Its crontab line is edited, the {topic} mail starts at {clock2}.",
            "The backup blocks the tables at that hour, hence I shifted the {topic} mail. It starts at {clock2} "
            "every night.",
        ],
        keep=("{topic}", "{clock2}"),
        old=("{topic}", "{clock}"),
    ),
    shape(
        "change",
        "away and back",
        "The request timeout of {service} is {small} seconds.",
        "Let's try it with {small2} seconds for the request timeout of {service}.",
        "The queue piles up with that, undo the experiment. The request timeout of {service} is back at the "
        "original {small} "
        "seconds.",
        keep=("{service}", "timeout", "{small}"),
        old=("{service}", "timeout", "{small2}"),
    ),
)

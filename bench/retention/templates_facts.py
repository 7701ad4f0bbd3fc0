"""Shapes of decisions, values, open questions, failures, and facts with a hedge or a negation."""

from __future__ import annotations

from retention.shapes import Shape, shape

FACTS: tuple[Shape, ...] = (
    shape(
        "decision",
        "a library with a reason",
        [
            "We go with {library} because {person} already runs it.",
            "Decision: {library}, since {person} runs it already.",
            "Let's take {library}. {person} runs it already, that's why.",
        ],
        keep=["{library}", "{person}"],
    ),
    shape(
        "decision",
        "a design with a reason",
        [
            "We keep one table per tenant, {table}_<id>, so that a tenant can be deleted quickly.",
            "Each tenant gets its own table {table}_<id>: deleting a tenant has to be quick.",
        ],
        keep=["{table}_<id>", "delet*"],
    ),
    shape(
        "decision",
        "the assistant's decision that the user confirms",
        "assistant:I suggest that retries stay in {service}, because only it knows the deadline.",
        "Agreed, retries stay in {service}.",
        keep=["retries", "{service}"],
    ),
    shape(
        "decision",
        "rejected for a reason",
        [
            "We looked at {library} and rejected it: too slow for {count} users.",
            "{library} is out, it is too slow with {count} users.",
        ],
        keep=["{library}", "reject*|out", "slow"],
    ),
    shape(
        "decision",
        "an owner",
        [
            "{person} takes over the {topic}.",
            "From here on {person} owns the {topic}.",
            "The {topic} belong to {person} now.",
        ],
        keep=["{person}", "{topic}"],
    ),
    shape(
        "decision",
        "a vote of the team",
        ["The team voted: the launch is in {city}.", "Launch city: {city}, the team has voted."],
        keep=["{city}", "launch"],
    ),
    shape(
        "value",
        "a port",
        ["{service} listens on port {port}.", "The port of {service} is {port}."],
        keep=["{service}", "{port}"],
    ),
    shape(
        "value",
        "a setting",
        ["{field} is {count} in production.", "In production we run with {field}={count}."],
        keep=["{field}", "{count}"],
    ),
    shape(
        "value",
        "a ticket",
        ["The ticket for the {topic} is {ticket}.", "See {ticket} about the {topic}."],
        keep=["{ticket}", "{topic}"],
    ),
    shape(
        "value",
        "a commit",
        ["The last good commit is {hash}.", "{hash} was the last commit that worked."],
        keep=["{hash}", "last"],
    ),
    shape(
        "value",
        "an address",
        ["The staging host is {host}, user deploy.", "Staging runs on {host} (user deploy)."],
        keep=["staging", "{host}"],
    ),
    shape(
        "value",
        "a phone number",
        ["Call me at +49 30 55{count}{small} if it breaks.", "If it breaks: +49 30 55{count}{small}."],
        keep=["+49 30 55{count}{small}"],
    ),
    shape(
        "value",
        "a measured value of the assistant",
        [
            "assistant:I measured it: the import takes {percent} seconds with {service}.",
            "assistant:With {service} the import takes {percent} seconds.",
        ],
        keep=["{percent} seconds", "{service}"],
    ),
    shape(
        "value",
        "a value in a result",
        "tool:status: done\nrows.imported={count}\nrows.rejected={small}\nsource={table}\n",
        keep=["rejected*", "{small}"],
    ),
    shape(
        "value",
        "a person's role",
        ["{person} {family} is our contact at {company}.", "At {company} we talk to {person} {family}."],
        keep=["{person} {family}", "{company}"],
    ),
    shape(
        "value",
        "a preference",
        ["I prefer tabs of width {small}.", "My editor uses a tab width of {small}, keep to it."],
        keep=["tab*", "{small}"],
    ),
    shape(
        "question",
        "an open question of the user",
        [
            "Still open: who pays for {service}?",
            "Open question for later: who pays for {service}?",
            "We have to find out who pays for {service}.",
        ],
        keep=["pays", "{service}"],
    ),
    shape(
        "question",
        "a question that waits for a person",
        [
            "I'm waiting for {person} to say whether we need {topic}.",
            "Whether we need {topic} depends on {person}, no answer yet.",
        ],
        keep=["{person}", "{topic}"],
    ),
    shape(
        "question",
        "a task for later",
        [
            "TODO for the end: rotate the key of {host}.",
            "At the end, please rotate the key of {host}.",
            "Don't forget to rotate the key of {host} at the end.",
        ],
        keep=["rotate", "{host}"],
    ),
    shape(
        "question",
        "the assistant's open question",
        [
            "assistant:One question is open: should {table} be dropped or archived?",
            "assistant:I still need to know: drop or archive {table}?",
        ],
        keep=["drop*", "archive*", "{table}"],
    ),
    shape(
        "failure",
        "a failed approach",
        [
            "I tried {library} last week and it failed: memory ran out at {count} rows.",
            "{library} did not work for us, it ran out of memory at {count} rows.",
        ],
        keep=["{library}", "{count} rows"],
    ),
    shape(
        "failure",
        "an error in a result",
        "tool:14 checks\nok config\nERROR {service}: connection refused by {host}\nok queue\n13 passed, 1 failed\n",
        keep=["{service}", "refused", "{host}"],
    ),
    shape(
        "failure",
        "the assistant reports a failure",
        [
            "assistant:The migration of {table} failed: a duplicate key in row {count}.",
            "assistant:{table} could not be migrated; row {count} has a duplicate key.",
        ],
        keep=["{table}", "{count}", "duplicate"],
    ),
    shape(
        "failure",
        "a failure that comes back",
        ["Each night at {clock} the job of {service} dies.", "{service} dies every night at {clock}."],
        keep=["{clock}", "{service}"],
    ),
    shape(
        "hedge",
        "probably",
        ["{service} is probably the culprit.", "The culprit is probably {service}."],
        keep=["probably", "{service}"],
        hedge="probably",
    ),
    shape(
        "hedge",
        "is not set",
        ["assistant:{field} is not set on {host}.", "assistant:On {host} {field} is not set."],
        keep=["not", "{field}", "{host}"],
        hedge="not",
    ),
    shape(
        "hedge",
        "not confirmed",
        [
            "{company} wants to pay {money} euros, but that is not confirmed.",
            "Unconfirmed: {company} pays {money} euros.",
        ],
        keep=["{company}", "{money}", "not|unconfirmed"],
        hedge="not|unconfirmed",
    ),
    shape(
        "hedge",
        "may",
        [
            "The contract may end on {date}, {person} is not sure.",
            "Maybe the contract ends on {date}; {person} isn't sure.",
        ],
        keep=["{date}", "may|maybe"],
        hedge="may|maybe",
    ),
    shape(
        "hedge",
        "does not apply to",
        ["The discount does not apply to {company}.", "No discount for {company}."],
        keep=["discount", "{company}", "not|no"],
        hedge="not|no",
    ),
    shape(
        "hedge",
        "only in one case",
        [
            "{flag} helps only with archives larger than {count} MB.",
            "Use {flag} only if the archive is larger than {count} MB.",
        ],
        keep=["{flag}", "only", "{count} MB"],
        hedge="only",
    ),
    shape(
        "hedge",
        "an estimate",
        ["I guess about {count} users are affected.", "Roughly {count} users are affected, I guess."],
        keep=["{count} users", "guess|about|roughly"],
        hedge="guess|about|roughly",
    ),
)

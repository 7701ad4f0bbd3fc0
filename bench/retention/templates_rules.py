"""Shapes of rules, of constraints inside long messages, and of instructions in the role `system`."""

from __future__ import annotations

from retention.shapes import NOT, Shape, shape

RULES: tuple[Shape, ...] = (
    shape(
        "rule",
        "never touch a folder",
        [
            "Never touch anything under {path}.",
            "Please don't ever edit {path}, other teams build on it.",
            "Keep out of {path}: do not change a single file there.",
        ],
        keep=[NOT, "{path}"],
    ),
    shape(
        "rule",
        "always run before",
        [
            "Always run `make {word}` before you commit.",
            "Before each commit you run `make {word}`, always.",
            "Run `make {word}` first, every time you commit something.",
        ],
        keep=["make {word}", "before|first"],
    ),
    shape(
        "rule",
        "must be approved by",
        [
            "Every change of the schema must be approved by {person}.",
            "{person} must approve all schema changes.",
            "Schema changes require an approval of {person}.",
        ],
        keep=["schema", "{person}", "approv*"],
    ),
    shape(
        "rule",
        "only this library",
        ["Use only {library} for plots.", "For plots we only use {library}.", "Plots are made with {library} only."],
        keep=["only", "{library}"],
    ),
    shape(
        "rule",
        "a library is forbidden",
        [
            "{library} is forbidden in this project for legal reasons.",
            "We may not use {library}, legal said no.",
            "Do not add {library} as a dependency.",
        ],
        keep=[NOT, "{library}"],
    ),
    shape(
        "rule",
        "a required name",
        [
            "The output file has to be called {table}.csv.",
            "Name the output {table}.csv, exactly like that.",
            "The result goes to {table}.csv; the loader looks for that name.",
        ],
        keep=["output|result", "{table}.csv"],
    ),
    shape(
        "rule",
        "a name must not appear",
        [
            "The customer's name, {family}, must not appear in any report.",
            "Never write {family} in a report.",
            "Leave {family} out: that name must never be in a report.",
        ],
        keep=[NOT, "{family}"],
    ),
    shape(
        "rule",
        "a budget of money",
        [
            "Our budget for this is {money} euros, all in.",
            "We can spend at most {money} euros on it.",
            "Stay below {money} euros in total.",
        ],
        keep=["{money} euros"],
    ),
    shape(
        "rule",
        "a limit of time",
        [
            "A request must answer within {count} ms.",
            "{count} ms is the hard limit for any request.",
            "No request may take longer than {count} ms.",
        ],
        keep=["{count} ms"],
    ),
    shape(
        "rule",
        "until a date",
        [
            "The API stays frozen until {date}.",
            "Don't change the API until {date}.",
            "Until {date} nothing in the API changes.",
        ],
        keep=["until", "{date}", "API"],
    ),
    shape(
        "rule",
        "ask before",
        [
            "Ask me before you delete anything in {folder}.",
            "Check with me first if something in {folder} has to go.",
            "Nothing in {folder} gets deleted without my okay.",
        ],
        keep=["ask|check|okay", "{folder}"],
    ),
    shape(
        "rule",
        "a deadline",
        ["It has to be live on {date}.", "The deadline is {date}.", "We go live on {date}, no matter what."],
        keep=["live|deadline", "{date}"],
    ),
    shape(
        "rule",
        "an exception of a rule",
        [
            "Log everything except {field}.",
            "All fields may be logged, but not {field}.",
            "Everything goes to the log, only {field} stays out.",
        ],
        keep=["except|not|out", "{field}"],
    ),
    shape(
        "rule",
        "a rule with a condition",
        [
            "If {service} is down, stop and do nothing.",
            "Stop at once when {service} is down.",
            "Should {service} be down, do not go on.",
        ],
        keep=["{service}", "down", "stop|not|nothing"],
    ),
    shape(
        "rule",
        "a person stays out",
        [
            "Don't mail {person} about this.",
            "Please leave {person} out of the mails: not a word to {person}.",
            "{person} must not get any mail about it.",
        ],
        keep=[NOT, "{person}"],
    ),
    shape(
        "rule",
        "an allergy",
        ["I can't eat {food}.", "By the way, no {food} for me, I'm allergic.", "I'm allergic to {food}."],
        keep=["{food}", "can't|no|allergic|not"],
    ),
    shape(
        "rule",
        "style of answers",
        ["Answer in {city} time, never in UTC.", "All times in {city} time please.", "Show every time in {city} time."],
        keep=["{city} time"],
    ),
    shape(
        "rule",
        "a rule in the negative plural",
        ["No secrets in {config}.", "{config} must stay free of secrets.", "Secrets never go into {config}."],
        keep=["secrets", "{config}", f"free|{NOT}"],
    ),
    shape(
        "buried",
        "a prohibition among background",
        [
            "<long>Whatever you do, don't restart {host}.<long>",
            "<long>One thing matters: {host} must not be restarted.<long>",
            "<long>Nobody is allowed to restart {host}.<long>",
        ],
        keep=[f"nobody|{NOT}", "{host}", "restart*"],
    ),
    shape(
        "buried",
        "a number among background",
        [
            "<long>We only have room for {small} seats in the pilot.<long>",
            "<long>The pilot is limited to {small} seats.<long>",
            "<long>At most {small} seats in the pilot.<long>",
        ],
        keep=["{small} seats"],
    ),
    shape(
        "buried",
        "a format among background",
        [
            "<long>Dates have to be written like {date}, never with numbers only.<long>",
            "<long>Always write dates like {date}.<long>",
        ],
        keep=["dates", "{date}"],
    ),
    shape(
        "buried",
        "a person among background",
        [
            "<long>{person} has to sign every contract, I can't do that.<long>",
            "<long>Contracts must be signed by {person}.<long>",
        ],
        keep=["{person}", "sign*"],
    ),
    shape(
        "buried",
        "a requirement at the end of a list",
        [
            "<long>- it should be quick\n- it should look nice\n- it must work offline with {library}\n<long>",
            "<long>1. nice colours\n2. large letters\n3. it must run offline, with {library}\n<long>",
        ],
        keep=["offline", "{library}"],
    ),
    shape(
        "system",
        "a new rule from the operator",
        [
            "system:From now on, do not call {service} directly.",
            "system:Operator notice: {service} must not be called directly any more.",
        ],
        keep=[NOT, "{service}"],
    ),
    shape(
        "system",
        "the user's plan",
        [
            "system:The user is on the plan {word}. Offer nothing above {money} dollars.",
            "system:Offers above {money} dollars are not allowed for this user (plan {word}).",
        ],
        keep=["{money} dollars", NOT],
    ),
    shape(
        "system",
        "a language",
        [
            "system:Reply with the name of the ticket, {ticket}, in the first line.",
            "system:The first line of each reply must contain {ticket}.",
        ],
        keep=["first line", "{ticket}"],
    ),
    shape(
        "system",
        "a time limit",
        [
            "system:This environment is deleted at {clock}. Save results to {folder} before.",
            "system:Save all results to {folder} before {clock}; then this environment is deleted.",
        ],
        keep=["{clock}", "deleted"],
    ),
)

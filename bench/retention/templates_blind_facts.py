"""Shapes of pairs, rules, decisions, guesses and values, by an author who knew neither the digest nor other "
"templates."""

from __future__ import annotations

from retention.shapes import NOT, Shape, shape

__all__ = ["BLIND_FACTS"]

_MAYBE = "might|may|maybe|probably|possibly|suspect*|guess|unconfirmed|likely"
BLIND_FACTS: tuple[Shape, ...] = (
    shape(
        "pair",
        "staging production",
        "Heads up on the limits: {field} is {count} on staging, small machine.",
        "And production has its own limit of course, with real customers. There {field} is {count2} on production.",
        keep=("{field}", "staging", "{count}"),
        other=("{field}", "production", "{count2}"),
    ),
    shape(
        "pair",
        "expense approvers",
        "Expenses of the sales people get approved by {person}.",
        "If an engineer hands something in, it takes another way: expenses of engineers get approved by {person2}.",
        keep=("sales", "expenses", "{person}"),
        other=("engineer*", "expenses", "{person2}"),
    ),
    shape(
        "pair",
        "same key two files",
        "In {config} we have {field}: {count}, that's what the web servers read.",
        "The batch jobs read their own file, with a key of the same name. {config2} says {field}: {count2} and "
        "that's on "
        "purpose.",
        keep=("{config}", "{field}", "{count}"),
        other=("{config2}", "{field}", "{count2}"),
    ),
    shape(
        "pair",
        "swimming days",
        "On Tuesdays the kids have swimming at {clock}, grandma drives. On Thursdays they have swimming at "
        "{clock2}, and "
        "I drive.",
        keep=("Tuesdays", "swimming", "{clock}"),
        other=("Thursdays", "swimming", "{clock2}"),
    ),
    shape(
        "pair",
        "plan a plan b",
        "Plan A for the trip is the night train to {city}, everyone loves that.",
        "And in case of a strike we need something in the drawer, so plan B for the trip is the bus to {city2}.",
        keep=("Plan A", "train", "{city}"),
        other=("plan B", "bus", "{city2}"),
    ),
    shape(
        "pair",
        "metrics ports",
        "assistant:On {host} the metrics are exposed on port {port}.",
        "assistant:The second box differs, as its default was taken by a printer daemon. On {host2} the metrics are "
        "exposed on port {port2}.",
        keep=("{host}", "metrics", "{port}"),
        other=("{host2}", "metrics", "{port2}"),
    ),
    shape(
        "pair",
        "notice periods",
        "our contract with {company} has a notice period of {small} days",
        "the one with {company2} is stricter, notice period of {small2} days there. put both in the calendar please",
        keep=("{company}", "notice", "{small} days"),
        other=("{company2}", "notice", "{small2} days"),
    ),
    shape(
        "pair",
        "siblings food",
        "For the summer camp form: {person} is on a diet without {food}. Her brother {person2} is on a diet without "
        "{food2}, and yes, cooking is fun at ours.",
        keep=("{person}", "without", "{food}"),
        other=("{person2}", "without", "{food2}"),
    ),
    shape(
        "pair",
        "mobile minimum",
        "Support wants the minimum versions in the FAQ. Android users need at least {version} of the app.",
        "For the same FAQ entry: iPhone users need at least {version2} of the app, the two stores are numbered apart.",
        keep=("Android", "{version}"),
        other=("iPhone", "{version2}"),
    ),
    shape(
        "pair",
        "loaf flour",
        "Recipe card one, the small rye loaf: {count} grams of flour and a night in the fridge.",
        "Recipe card two, the large rye loaf: {count2} grams of flour, two nights.",
        keep=("small", "loaf", "{count}"),
        other=("large", "loaf", "{count2}"),
    ),
    shape(
        "pair",
        "order bounds",
        "{company} has odd terms for tiles. Their smallest order is {small} boxes and their largest order is {count} "
        "boxes, in between anything goes.",
        keep=("smallest order", "{small} boxes"),
        other=("largest order", "{count} boxes"),
    ),
    shape(
        "pair",
        "two rents",
        "We rent out two flats. The one in {city} brings {money} a year, before tax.",
        "The other flat, {city2}, brings {money2} a year before tax, it has the balcony.",
        keep=("{city}", "brings", "{money}"),
        other=("{city2}", "brings", "{money2}"),
    ),
    shape(
        "pair",
        "warn and page",
        "When errors in {service} reach {percent} percent, post a warning into the channel.",
        "The second step of the ladder: at {percent2} percent errors in {service}, page whoever is on call.",
        keep=("{service}", "warning", "{percent} percent"),
        other=("{service}", "page", "{percent2} percent"),
    ),
    shape(
        "pair",
        "study and replication",
        "The original study in {city} had a response rate of {percent} percent.",
        "tool:table 3: replication in {city2}, response rate {percent2} percent, same questionnaire",
        keep=("{city}", "response rate", "{percent}"),
        other=("{city2}", "response rate", "{percent2}"),
    ),
    shape(
        "pair",
        "exam rooms",
        "Half of the class, group North, writes in room {count}. Group South writes in room {count2} at the same hour, "
        "with {person} watching.",
        keep=("North", "room {count}"),
        other=("South", "room {count2}"),
    ),
    shape(
        "pair",
        "two branches owner",
        "{branch} is what the bank gets, and {person} merges into it.",
        "<long> For the hospital there's a line of its own: {branch2}, and {person2} merges into that one.",
        keep=("{branch}", "{person}", "merges"),
        other=("{branch2}", "{person2}", "merges"),
    ),
    shape(
        "rule",
        "no surname in letters",
        "one thing about the newsletter, the {family} family asked us not to print their name anywhere. ok? rest is up "
        "to you",
        keep=("{family}", NOT, "print"),
    ),
    shape(
        "rule",
        "never restart host",
        "Whatever happens tonight, never restart {host} while the nightly export is running, it took us a week "
        "to clean "
        "up last time.",
        keep=("{host}", NOT, "restart"),
    ),
    shape(
        "rule",
        "metric units",
        "btw always give me oven temperatures in Celsius, I can't convert in my head when my hands are full of dough.",
        keep=("always", "temperatures", "Celsius"),
    ),
    shape(
        "rule",
        "ask before booking",
        "Before you book anything above {count} euros you ask {person}, she holds the purse.",
        keep=("{count} euros", "ask", "{person}"),
    ),
    shape(
        "rule",
        "no new dependency",
        "<long> And please don't pull in {library} for this, the licence people at our place go mad when they see it.",
        keep=(NOT, "{library}"),
    ),
    shape(
        "rule",
        "student names initials",
        "When you summarise the essays, students must appear with initials only. Parents read these files.",
        keep=("students", "initials only"),
    ),
    shape(
        "rule",
        "folder read only",
        "{folder} is evidence in a law suit, so you may read it, but nothing in there gets changed or renamed.",
        keep=("{folder}", NOT, "changed"),
    ),
    shape(
        "rule",
        "changelog line",
        "every commit that touches {path} needs a line in the changelog, {person} checks that by hand",
        keep=("{path}", "commit", "changelog"),
    ),
    shape(
        "decision",
        "floor oak",
        "assistant:For the living room of the {family} house I see oak, cork or tiles. Cork is the warmest, and oak "
        "lasts longest.",
        "next:we slept on it. oak for the {family} living room, the dog would eat the cork",
        keep=("oak", "{family}", "living room"),
    ),
    shape(
        "decision",
        "split service",
        "After all that back and forth: we split {service} in two and {person} takes the reading half.",
        keep=("split", "{service}"),
    ),
    shape(
        "decision",
        "fund choice",
        "ok we're putting the inheritance into the index fund of {company}, and leaving the rest in the savings "
        "account. "
        "My wife agrees, for once.",
        keep=("inheritance", "index fund", "{company}"),
    ),
    shape(
        "decision",
        "conference skip",
        "Regarding the conference in {city}: we're skipping it this year. Two people are on leave, and the paper isn't "
        "ready either.",
        keep=("conference", "{city}", "skip*"),
    ),
    shape(
        "decision",
        "store in table",
        "Fine, you convinced me. {topic} go into {table}, because joins are cheaper there than at read time.",
        keep=("{topic}", "{table}"),
    ),
    shape(
        "decision",
        "band for party",
        "<long> About the music for the company party, {person} plays with her trio. It's booked, so no DJ.",
        keep=("party", "{person}", "trio"),
    ),
    shape(
        "hedge",
        "memory leak guess",
        "The restarts of {service} are probably a memory leak, but I only looked at one graph.",
        keep=("{service}", "memory leak", _MAYBE),
        hedge=_MAYBE,
    ),
    shape(
        "hedge",
        "merger rumour",
        "Heard at the coffee machine that {company} might close the office in {city}. No source, so treat it "
        "like that.",
        keep=("{company}", "close", "{city}", "might|rumour|heard|possibly|maybe"),
        hedge="might|rumour|heard|possibly|maybe",
    ),
    shape(
        "hedge",
        "assistant slow query",
        "assistant:I suspect that the missing index on {table} makes the report slow. I have no query plan yet.",
        keep=("{table}", "index", "slow", "suspect*|probably|might|may|unconfirmed|likely"),
        hedge="suspect*|probably|might|may|unconfirmed|likely",
    ),
    shape(
        "hedge",
        "deposit unsure",
        "I think the deposit for the {family} flat was {money}, not sure though, the paper is at my mother's.",
        keep=("{family}", "deposit", "{money}", "think|not sure|unsure|probably|maybe"),
        hedge="think|not sure|unsure|probably|maybe",
    ),
    shape(
        "value",
        "booking reference",
        "the museum tour in {city} is under booking code {hash}, they want it at the door",
        keep=("{city}", "{hash}"),
    ),
    shape(
        "value",
        "loan rate",
        "For the spreadsheet: the loan of the {family} company runs at {percent} percent, fixed for ten years.",
        keep=("{family}", "loan", "{percent} percent"),
    ),
    shape(
        "value",
        "tool row count",
        "tool:select count(*) from {table}: {count} rows, 0.4 s",
        keep=("{table}", "{count} rows"),
    ),
    shape(
        "value",
        "flag name",
        "If the import hangs there's a hidden switch. Run it with {flag} and it skips the broken rows.",
        keep=("{flag}", "skips", "rows"),
    ),
)

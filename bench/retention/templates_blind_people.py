"""Shapes of changes in private and office talk, by an author who knew neither the digest nor other templates."""

from __future__ import annotations

from retention.shapes import Shape, shape

__all__ = ["BLIND_PEOPLE"]

BLIND_PEOPLE: tuple[Shape, ...] = (
    shape(
        "change",
        "wedding guests",
        "Planning the {family} wedding with you now. The guest list tops out at {count} people for the {family} "
        "wedding, "
        "the barn won't take more.",
        "ok so the owner just called, there's a second tent behind the barn. Make it {count2} guests for the {family} "
        "wedding then. Also can you ask the caterer whether the soup still works outside?",
        keep=("{family}", "wedding", "{count2}"),
        old=("{family}", "wedding", "{count}"),
    ),
    shape(
        "change",
        "dentist day",
        "dentist for {person} is Monday at 8, pls put it in the family plan",
        "next:sorry, Tuesday I meant. the dentist for {person} is closed on Mondays anyway",
        keep=("{person}", "dentist", "Tuesday"),
        old=("{person}", "dentist", "Monday"),
    ),
    shape(
        "change",
        "contact moved",
        "For anything about {topic} you ask {person}, she knows the whole mess.",
        "hm that error again. {person} moved over to the billing team last week. She won't even answer there. "
        "{person2} is who "
        "you ask about {topic} these days. <long>",
        keep=("{topic}", "ask", "{person2}"),
        old=("{topic}", "ask", "{person}"),
    ),
    shape(
        "change",
        "dashboard library",
        "I've settled on {library} for the admin dashboard, so write the tickets with that in mind.",
        "Long call with the team, sorry for the silence. We ended up going with {library2} for the admin "
        "dashboard, half "
        "of them know it already. Can you adapt the tickets?",
        keep=("{library2}", "dashboard"),
        old=("{library}", "dashboard"),
    ),
    shape(
        "change",
        "bathroom leak",
        "The leak in the {family} bathroom comes from the toilet seal, says the plumber. Need a letter to the "
        "insurance.",
        "He opened the wall today. Turns out it's the shower valve that causes the leak in the {family} "
        "bathroom, so the "
        "letter has to say that.",
        keep=("{family}", "leak*", "shower valve"),
        old=("{family}", "leak*", "toilet seal"),
    ),
    shape(
        "change",
        "flight time",
        "My flight to {city} leaves at {clock}, and I like to be at the airport two hours ahead.",
        "<long> update: the airline mailed, {city} flight is at {clock2} and from the other terminal. What's the best "
        "tram there?",
        keep=("{city}", "flight", "{clock2}"),
        old=("{city}", "flight", "{clock}"),
    ),
    shape(
        "change",
        "who writes tests",
        "Leave the tests for {topic} to me, I'll write them at the weekend.",
        "Forget what I said about the weekend, my sister is visiting. You write the tests for {topic}, in the "
        "same PR if "
        "that works.",
        keep=("{topic}", "tests", "you write"),
        old=("{topic}", "tests", "to me"),
    ),
    shape(
        "change",
        "retention legal",
        "The privacy page should say that we store {topic} for {small} months.",
        "two things. the footer link is dead, and per legal it's now {small2} months that we store {topic}. they want "
        "the page live by noon",
        keep=("{topic}", "store", "{small2} months"),
        old=("{topic}", "store", "{small} months"),
    ),
    shape(
        "change",
        "cake sugar",
        "The birthday cake for {person} takes {count} grams of sugar and six eggs. Can you scale it to two trays?",
        "my mum read this and laughed, way too sweet. {count2} grams of sugar is plenty for the cake of {person}, rest "
        "stays",
        keep=("{person}", "sugar", "{count2}"),
        old=("{person}", "sugar", "{count}"),
    ),
    shape(
        "change",
        "assistant port",
        "assistant:I read the README. {service} listens on port {port}, so the health check should go there.",
        "assistant:I have to correct myself after looking into the running container. {service} listens on port "
        "{port2}, the README is three years old.",
        keep=("{service}", "{port2}"),
        old=("{service}", "{port}"),
    ),
    shape(
        "change",
        "tool server version",
        "{host} runs postgres {version}, so pick the syntax for that.",
        "tool:{host} psql -c 'show server_version': postgres {version2} (1 row)",
        keep=("{host}", "postgres", "{version2}"),
        old=("{host}", "postgres", "{version}"),
    ),
    shape(
        "change",
        "goal latency",
        "The goal for {service} this quarter is to answer in under {count} ms.",
        "Had lunch with {person} from product. She couldn't care less about latency, nobody ever complained. The goal "
        "for {service} is fewer crashes, so measure that. <long>",
        keep=("{service}", "goal", "fewer crashes"),
        old=("{service}", "goal", "{count} ms"),
    ),
    shape(
        "change",
        "path released",
        "Hands off {path} please, {person} has a big branch open there.",
        "{person} merged this morning and is off to the beach. {path} is free again, edit whatever you need there.",
        keep=("{path}", "free|edit"),
        old=("{path}", "hands off"),
    ),
    shape(
        "change",
        "push revoked",
        "You can push straight to {branch}, nobody reviews that one.",
        "The auditors gave {person} an earful yesterday. From today on {branch} takes pull requests only, even for "
        "typos. Anyway, where were we with the changelog?",
        keep=("{branch}", "pull requests"),
        old=("{branch}", "push straight"),
    ),
    shape(
        "change",
        "rebrand",
        "The lease contract is with {company}, so put that in the header.",
        "Little surprise in the mail of their lawyer: since the merger they trade as {company2}. The header of "
        "the lease "
        "contract has to carry the new name, otherwise it's void.",
        keep=("{company2}", "contract"),
        old=("{company}", "contract"),
    ),
    shape(
        "change",
        "midterm date",
        "The midterm is on {date}, three questions, open book. Draft me an info sheet for the students.",
        "can you make the sheet a bit shorter? the faculty shuffled the rooms again, and the midterm gets pushed to "
        "{date2}. and please in a bigger font",
        keep=("midterm", "{date2}"),
        old=("midterm", "{date}"),
    ),
    shape(
        "change",
        "kitchen budget",
        "Our ceiling for the kitchen of the {family} house is {money} euros, appliances included.",
        "the bank came back with a better rate!! we can go up to {money2} euros on the {family} kitchen, so the stone "
        "worktop is back in",
        keep=("{family}", "kitchen", "{money2}"),
        old=("{family}", "kitchen", "{money}"),
    ),
    shape(
        "change",
        "allergy cleared",
        "{person} is allergic to {food}, so plan the dinner around that.",
        "Good news from the clinic, the test came back clean. {person} can eat {food} like anybody else, no need to "
        "plan around it. What about dessert?",
        keep=("{person}", "can eat", "{food}"),
        old=("{person}", "allergic", "{food}"),
    ),
    shape(
        "change",
        "invoice typo",
        "The invoice of {company} is {money} euros, book it under travel.",
        "next:argh, swapped two rows when I copied it. {money2} it says on the invoice of {company}.",
        keep=("{company}", "invoice", "{money2}"),
        old=("{company}", "invoice", "{money}"),
    ),
    shape(
        "change",
        "cohort size",
        "The {city} cohort has {count} participants, use that in the methods section.",
        "I reran the cleaning and it had kept some people twice. Without the duplicates the {city} cohort has {count2} "
        "participants. The other tables look fine to me.",
        keep=("{city}", "cohort", "{count2}"),
        old=("{city}", "cohort", "{count}"),
    ),
    shape(
        "change",
        "assistant diagnosis",
        "assistant:The cause of {ticket} is a race between two workers of the queue, both grab the same row.",
        "assistant:My diagnosis didn't survive the logs of last night, only one worker was up at the time. The "
        "cause of "
        "{ticket} is an expired certificate on the upstream side.",
        keep=("{ticket}", "cause", "expired certificate"),
        old=("{ticket}", "cause", "race"),
    ),
    shape(
        "change",
        "workshop city",
        "We hold the pricing workshop in {city}, please find a room for twelve.",
        "ok {person} can't travel with the baby. We'll hold the pricing workshop in {city2} after all, same size "
        "of room, "
        "and something with a garden would be nice.",
        keep=("workshop", "{city2}"),
        old=("workshop", "{city}"),
    ),
    shape(
        "change",
        "field bumped",
        "Put {field} at {count} in the deploy, that should be enough.",
        "it's not enough lol, ops saw timeouts all night. bump {field} up to {count2} and redeploy",
        keep=("{field}", "{count2}"),
        old=("{field}", "{count}"),
    ),
    shape(
        "change",
        "mixed up people",
        "{person} signs off the floor plans before the builders get them.",
        "I keep mixing up those two, same haircut. The person who signs off the floor plans is {person2}. Address the "
        "mail accordingly.",
        keep=("{person2}", "signs off", "floor plans"),
        old=("{person}", "signs off", "floor plans"),
    ),
    shape(
        "change",
        "rewrite postponed",
        "Start the rewrite of {service} right away, I want to see something on Friday.",
        "Thinking about it in the shower, I was too eager. The rewrite of {service} waits until the audit is through, "
        "better for everybody's nerves. Until then just collect the ugly spots.",
        keep=("{service}", "rewrite", "until the audit"),
        old=("{service}", "rewrite", "right away"),
    ),
    shape(
        "change",
        "hotel rate",
        "Hotel Miramar in {city} is {count} a night, reckon with that for the budget.",
        "assistant:I looked up the live rates for your dates, and last year's price won't do. Hotel Miramar in {city} "
        "asks {count2} a night. Breakfast is included.",
        keep=("Miramar", "{city}", "{count2}"),
        old=("Miramar", "{city}", "{count}"),
    ),
    shape(
        "change",
        "tool vendor limit",
        "assistant:According to the vendor's docs, {field} is capped at {count} for our plan.",
        "tool:400 Bad Request: {field} is capped at {count2} for your plan since the pricing update of this week",
        keep=("{field}", "capped", "{count2}"),
        old=("{field}", "capped", "{count}"),
    ),
    shape(
        "change",
        "court venue",
        "The {family} case gets heard in {city}, so cite the local rules of procedure.",
        "The judge granted the other side's motion this morning, which is a pain for our witnesses. Means the {family} "
        "case gets heard in {city2}, and the brief must follow the rules there. <long>",
        keep=("{family}", "heard", "{city2}"),
        old=("{family}", "heard", "{city}"),
    ),
    shape(
        "change",
        "handbook language",
        "Write the {company} handbook in German, most of the crew is from around here.",
        "HR overruled me, fair enough, they have the new hires in mind. English it is for the {company} handbook, "
        "including the captions.",
        keep=("{company}", "handbook", "English"),
        old=("{company}", "handbook", "German"),
    ),
    shape(
        "change",
        "standup three",
        "Daily standup is at {clock}, put it into the onboarding doc.",
        "could everyone live with standup at {clock2}? {person} has the school run. let's do that",
        "So the school run solved itself, and the folks overseas hated both slots. Standup is at {clock3} until "
        "further "
        "notice.",
        keep=("standup", "{clock3}"),
        old=("standup", "{clock}|{clock2}"),
    ),
    shape(
        "change",
        "projector duty",
        "{person} brings the projector to the offsite, and I bring the cables.",
        "{person} is in bed with the flu. Poor thing, and just before the holidays. {person2} fills in and "
        "brings the projector to the offsite. Cables "
        "are packed already.",
        keep=("{person2}", "brings", "projector"),
        old=("{person}", "brings", "projector"),
    ),
    shape(
        "change",
        "release yanked",
        "Pin {library} to {version} in the lockfile, we tested with that.",
        "did you see the advisory? that release got yanked overnight. the safe one to pin is {library} {version2}, go "
        "with it everywhere",
        keep=("{library}", "pin", "{version2}"),
        old=("{library}", "pin", "{version}"),
    ),
)

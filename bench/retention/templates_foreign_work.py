"""Scripts of people at work: data analysis, an incident, a contract, a laboratory, a newsroom, a building site."""

from __future__ import annotations

from random import Random

from retention.foreign import Register, Script, parse_script

__all__ = ["WORK"]


def _table(random: Random) -> str:
    rows = [f"{n:>4}  {random.uniform(0, 9):.3f}  {random.uniform(0, 9):.3f}" for n in range(random.randint(10, 50))]
    return "\n".join(["   n     mean    sd", *rows])


def _events(random: Random) -> str:
    states = ("healthy", "scaled", "drained", "warmed up", "checked")
    rows = [f"14:{n:02d} pod-{random.randint(100, 999)} {random.choice(states)}" for n in range(random.randint(10, 45))]
    return "\n".join(rows)


def _clauses(random: Random) -> str:
    pieces = (
        "The headings of this document serve convenience and have no effect on its interpretation.",
        "Each party bears its own costs of the negotiation.",
        "Singular words include the plural where the context allows it.",
        "This section survives the end of the agreement.",
    )
    return "\n".join(f"{n}. {random.choice(pieces)}" for n in range(1, random.randint(6, 24)))


ANALYSIS = Register(
    (
        "Can you plot that again?",
        "Show me the first rows.",
        "And by quarter?",
        "Looks odd, but okay.",
        "Next chart, please.",
    ),
    (
        "Here is the chart.",
        "The curve rises in spring and falls in autumn.",
        "The column has a long tail on the right side.",
        "I computed mean and deviation for each group.",
        "The two groups look much the same.",
    ),
    _table,
)
INCIDENT = Register(
    ("status?", "any change?", "ok, keep watching", "graphs look calm to me", "brb"),
    (
        "Checking the dashboards.",
        "Traffic is flat for the moment.",
        "I am looking at the next node.",
        "Still watching.",
    ),
    _events,
    0.7,
)
LEGAL = Register(
    ("Please continue with the next section.", "Understood.", "Could you rephrase that for a lay reader?", "Go on."),
    (
        "The section is standard.",
        "In plain words: both sides talk before they sue.",
        "I find nothing unusual here.",
        "This clause is common in agreements of this size.",
    ),
    _clauses,
    0.4,
)
OFFICE = Register(
    ("ok", "sounds fine", "let me read it on the train", "nice!", "what else is on the list?"),
    (
        "I have added it to the draft.",
        "The next item is short.",
        "Here is a friendlier version of the paragraph.",
        "I moved the second section up.",
    ),
)

_SCRIPTS: tuple[tuple[Register, str], ...] = (
    (
        ANALYSIS,
        """
churn analysis
u I have the churn data in {table1}. Rows before {date1} are test data, so leave them out of every figure.
= rule {date1} & test|leave
u Group by region. {city} and the rest of that region get reported together because the sample is tiny.
= decision {city} & together & tiny|sample
t segment,share\\nmonthly,{percent1}\\nannual,{percent2}\\n
= value annual & {percent2}
a Seasonality might explain the dip in {month}; I could not verify it.
= hedge {month} & might / hedge might
u My boss wants medians. Means are banned from the slides.
= rule means & banned
u The target table is {table2}.
u Actually write it to {table3}, {table2} is frozen.
= change {table3} / old {table2}
u We still don't know which tariff the {count} missing accounts had.
= question {count} & missing|know
""",
    ),
    (
        ANALYSIS,
        """
a trial of a drug
u Patients with code {ticket1} withdrew consent. Their rows may not be used in any way.
= rule {ticket1} & NOT
u Significance level is 0.0{small1} for the primary endpoint.
= value 0.0{small1} & endpoint|level
u Secondary endpoint uses 0.1{small2}.
= pair primary & 0.0{small1} / other secondary & 0.1{small2}
t fit converged\\nhazard_ratio={percent1}\\np_value=0.003\\nwarnings=none\\n
= value hazard* & {percent1}
a Site {city1} has twice the dropout of the others. The reason is unknown.
= question {city1} & unknown|dropout
u Use {library1} for the survival curves.
u On second thought {library2}: the reviewers know it.
= change {library2} / old {library1}
u Sample size is {count1}, no wait, {count2} after the exclusions.
= value {count2}
""",
    ),
    (
        INCIDENT,
        """
checkout is down
u sev1 since {clock}. checkout returns 502 for everyone in {city}
= failure {clock} & 502|checkout
u nobody fails over {host1} without {person1} on the call
= rule {host1} & {person1} & nobody
t deploy list\\n{service1} rev {hash1} 09:12\\n{service2} rev {hash2} 11:40\\n
= value {service2} & {hash2}
a My best guess is the pool of {service1}: it might be exhausted.
= hedge {service1} & guess|might / hedge guess|might
u rollback target is {hash1}
u not {hash1}, it has the same bug. roll back to {hash3}
= change {hash3} / old {hash1}
u customers get no refund promise from us until finance signs off
= rule refund & until & finance
u {person2} is incident commander
u {person3} takes over as incident commander, {person2} goes home
= change {person3} & commander / old {person2} & is incident commander
""",
    ),
    (
        INCIDENT,
        """
a full disk
u disk on {host1} at {percent1} percent, {host2} at {percent2} percent
= pair {host1} & {percent1} / other {host2} & {percent2}
u you may prune {folder1}. hands off {folder2}, auditors need it
= rule {folder2} & hands off|auditors
a I raised the alert threshold from {small1} to {small2} percent.
= value {small2} & threshold
t cleanup.sh: line 14: permission denied: {folder3}\\nremoved 0 files\\n
= failure denied & {folder3}
u freeze ends {date1}
u correction: freeze ends {date2}
= change freeze & {date2} / old {date1}
u postmortem owner {person}, due a week after
= decision postmortem & {person}
s Tool access to {host3} is revoked for this session.
= system {host3} & revoked
""",
    ),
    (
        LEGAL,
        """
a lease
u We act for the tenant, {company1}. The landlord is {company2}.
= pair tenant & {company1} / other landlord & {company2}
u The client refuses any clause about personal guarantees.
= rule refuse* & guarantee*
u Rent is {money1} euros a month.
u They countered, and we accepted: {money2} euros a month.
= change {money2} euros / old {money1} euros
a Section 14 is arguably void under local law, though I found no judgment on it.
= hedge section 14 & arguably|though / hedge arguably|though
u Notice period shall be {small} weeks, since {person} has to relocate a workshop.
= decision {small} weeks & {person}
u Nothing leaves this chat before the partner, {family}, has read it.
= rule {family} & nothing|before
u Who insures the glass front is unresolved.
= question glass & unresolved|insures
""",
    ),
    (
        LEGAL,
        """
a licence agreement
s Cite only statutes; the firm does not permit quotations from commentaries in this matter ({ticket}).
= system only & statutes
u The licence is exclusive in {city1} and non-exclusive in {city2}.
= pair {city1} & exclusive / other {city2} & non-exclusive
u Cap on liability: {money1} dollars.
u Raise the cap on liability to {money2} dollars.
= change {money2} dollars & cap / old {money1} dollars
u Governing law must be that of {city3}. This one is a deal breaker.
= rule {city3} & law
a The other side has neither confirmed nor rejected the audit right.
= hedge audit & neither / hedge neither
u Delivery was set for {date1}, but {person} only guarantees {date2}.
= value {date2}
""",
    ),
    (
        OFFICE,
        """
a newsletter
u The newsletter goes to members only, the press gets it a week later.
= rule members only & press
u Please spell it {word1}Net, the founder hates every other spelling.
= rule {word1}Net
u The cover story is about {person1}.
u We swap the cover: {person2} instead, {person1} moves inside.
= change {person2} / old cover story & {person1}
u Keep it under {count} words. Really.
= rule {count} words
a I could not find out who took the photo on page 3.
= question photo & page 3
u Thank {company} at the bottom, they paid for the paper.
= rule {company} & thank|paid
""",
    ),
    (
        OFFICE,
        """
a building site
u The crane may only run between {clock1} and {clock2}, the neighbours went to court.
= rule {clock1} & {clock2} & only
u Concrete comes from {company1}.
u {company1} cancelled on us. {company2} delivers the concrete.
= change {company2} & concrete / old concrete & {company1}
u Beam A carries {small1} tons.
u Beam B carries {small2} tons.
= pair beam a & {small1} tons / other beam b & {small2} tons
u The inspector found cracks in stair {count}. Closed till further notice.
= failure stair {count} & cracks|closed
a Whether the permit covers the cellar is unclear to me.
= hedge permit & unclear & cellar / hedge unclear
u Helmets, always, even in the office container.
= rule helmets & always
""",
    ),
)

WORK: tuple[tuple[Register, Script], ...] = tuple((register, parse_script(text)) for register, text in _SCRIPTS)

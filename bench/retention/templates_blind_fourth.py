"""Shapes of changes by a fourth author who knew neither the digest nor other templates."""

from __future__ import annotations

from retention.shapes import Shape, shape

__all__ = ["BLIND_FOURTH"]

_HOME = (
    shape(
        "change",
        "parents evening",
        "parents evening for {person} is {date} in room 4b. can you remind us the day before",
        "school wrote again... parents evening for {person} will be on {date2}, hall is being painted. same room",
        keep=("{person}", "parents", "{date2}"),
        old=("{person}", "parents", "{date}"),
    ),
    shape(
        "change",
        "mixed up sisters",
        "quick one for the dinner on Saturday: {person} can't have {food}, so leave it out of the starters",
        "next:gah i mixed up the two sisters. {food} is Ida's problem, {person} is the one allergic to {food2}",
        keep=("{person}", "allergic", "{food2}"),
        old=("{person}", "can't", "{food}"),
    ),
    shape(
        "change",
        "dog and ankle",
        "{person} walks the dog on weekdays at noon, she has her own key",
        "{person} broke her ankle :( her neighbour {person2} is going to take the dog out on weekdays",
        keep=("{person2}", "dog", "weekdays"),
        old=("{person}", "walks", "dog"),
    ),
    shape(
        "change",
        "piano lessons return",
        "piano with Mrs {family} is every Wednesday at {clock}, pls add it to the calendar for the kids",
        "piano with Mrs {family} is cancelled for the rest of the term, she had an operation",
        "good news!! Mrs {family} is well and piano is back on, Wednesdays as before",
        keep=("{family}", "piano", "back"),
        old=("{family}", "piano", "cancelled"),
    ),
    shape(
        "change",
        "party list",
        "For the birthday of {person}:\n- cake from the bakery in Mill Lane\n- {small} balloons, gold\n- candles",
        "One change to the birthday list for {person}, {small2} balloons. Everything else can stay.",
        keep=("{person}", "{small2}", "balloons"),
        old=("{small}", "balloons"),
    ),
    shape(
        "change",
        "stopover",
        "Book us a hotel in {city} for the stopover, close to the station if there is one left.",
        "Can you put the stopover in {city2}? My sister just moved there and she has a sofa bed.",
        keep=("stopover", "{city2}"),
        old=("hotel", "{city}", "stopover"),
    ),
    shape(
        "change",
        "tablets for the cat",
        "{person} (the cat) gets two tablets a day with wet food, can you make a chart for the sitter",
        "vet just called back about {person}, it's one tablet a day. the higher dose was meant for a bigger animal",
        keep=("{person}", "one", "tablet"),
        old=("{person}", "two", "tablets"),
    ),
    shape(
        "change",
        "key for the plumber",
        "The plumber comes on {date} in the morning. The key is with {person} at number nine.",
        "{person} is abroad that week, so I dropped the key off with {person2} from the flower shop.",
        keep=("{person2}", "key"),
        old=("key", "{person}", "number"),
    ),
    shape(
        "change",
        "kitchen money",
        "We can spend {money} on the kitchen and not a cent more, so please compare offers with that in mind.",
        "We talked it over last night and the bank is fine with it. {money2} is what the kitchen may cost us, "
        "appliances included.",
        keep=("{money2}", "kitchen"),
        old=("{money}", "kitchen"),
    ),
    shape(
        "change",
        "thirsty tomatoes",
        "water the tomatoes every day at {clock}, ten minutes",
        "the tomatoes are drowning lol. {clock2} on mondays and thursdays is plenty",
        keep=("tomatoes", "{clock2}"),
        old=("tomatoes", "{clock}"),
    ),
    shape(
        "change",
        "telly on school days",
        "house rule: {person} may watch telly on weekends only",
        "{person} earned it with that report card, so half an hour of telly on school days is ok too",
        keep=("{person}", "telly", "school"),
        old=("{person}", "telly", "weekends"),
    ),
    shape(
        "change",
        "menu after the vote",
        "the vegetarian menu is for everybody on the {city} trip, saves us the discussion",
        "so we had a vote. on the {city} trip the vegetarian menu goes to those who tick the box, rest get chicken",
        keep=("vegetarian", "{city}", "tick"),
        old=("vegetarian", "everybody", "{city}"),
    ),
)
"""Families, guests, pets and houses."""

_OFFICE = (
    shape(
        "change",
        "offsite and strike",
        "Dear team,\n\nthe offsite takes place in {city} from Tuesday to Thursday. {person} books the trains.\n\n"
        "Kind regards\n{family}",
        "Dear all,\n\nwith reference to my last mail: owing to the strike, the offsite takes place in {city2}. "
        "Tickets that you paid for yourselves can be handed in.\n\nKind regards\n{family}",
        keep=("offsite", "{city2}"),
        old=("offsite", "{city}"),
    ),
    shape(
        "change",
        "power of attorney",
        "All contracts with {company} are signed by {person}.",
        "As of this week {person2} holds power of attorney for {company}; contracts go to her desk and nowhere else.",
        keep=("{company}", "{person2}", "contracts"),
        old=("{company}", "signed", "{person}"),
    ),
    shape(
        "change",
        "trademark trouble",
        "the client project is called {word}, use that name on all slides",
        "legal had a look and somebody owns that trademark. on the slides the client project goes by {word2}",
        keep=("client", "project", "{word2}"),
        old=("client", "project", "{word}"),
    ),
    shape(
        "change",
        "journalists",
        "Journalists who ask about {company} get no reply from us. Just file what they write.",
        "Please do reply to journalists about {company}, with the standard statement that {person} approved.",
        keep=("journalists", "{company}", "standard"),
        old=("journalists", "{company}", "no"),
    ),
    shape(
        "change",
        "half an hour weekly",
        "the weekly with {company} is 60 minutes, block it in all our calendars",
        "why does the invite say an hour? the weekly with {company} takes 30 minutes since they cut the retainer",
        keep=("weekly", "{company}", "30"),
        old=("weekly", "{company}", "60"),
    ),
)
"""Mails, contracts and calendars."""

_SUPPORT = (
    shape(
        "change",
        "refunds need a supervisor",
        "system:Refunds up to {money} may be granted by the assistant without a supervisor.",
        "system:Notice from the operator: every refund needs the consent of a supervisor, whatever the amount.",
        keep=("every", "refund", "supervisor"),
        old=("refunds", "{money}", "without"),
    ),
    shape(
        "change",
        "shift plan of live agents",
        "system:You answer customers of {company}. Live agents of {company} are reachable from {clock} on weekdays.",
        "system:New shift plan. Live agents of {company} are reachable from {clock2} on weekdays.",
        keep=("agents", "{company}", "{clock2}"),
        old=("agents", "{company}", "{clock}"),
    ),
    shape(
        "change",
        "parcel to the parents",
        "hi my order is {ticket}, the parcel should go to {city} like last time",
        "so turns out im moving earlier than planed, pls send {ticket} to my parents in {city2}, new flat isnt ready",
        keep=("{ticket}", "{city2}"),
        old=("{ticket}", "{city}"),
    ),
    shape(
        "change",
        "jacket with a belt",
        "the {word} jacket looks nothing like the photo, I want a refund",
        "tried it on with a belt and my daughter loves it. i'm keeping the {word} jacket, you can close the case",
        keep=("keeping", "{word}", "jacket"),
        old=("refund", "{word}", "jacket"),
    ),
    shape(
        "change",
        "downgrade withdrawn",
        "Please downgrade account {ticket} to the Basic plan at the end of {month}.",
        "Account {ticket} again: I had a word with {person}, and we stay on Team. Please leave the plan as it is.",
        keep=("{ticket}", "stay", "Team"),
        old=("{ticket}", "downgrade", "Basic"),
    ),
    shape(
        "change",
        "the practice moves a patient",
        "assistant:Your appointment with Doctor {family} is booked for {date} at {clock}.",
        "assistant:The practice has just sent a message: Doctor {family} is going to see you on {date2}, same time.",
        keep=("{family}", "{date2}"),
        old=("{family}", "{date}"),
    ),
)
"""Customers, support bots and their operators."""

_LANGUAGES = (
    shape(
        "change",
        "zahlungsziel",
        "Die Rechnungen an {company} gehen mit 14 Tagen Zahlungsziel raus.",
        "Kurze Info von {person}: bei {company} gelten ab sofort 30 Tage Zahlungsziel, bitte die Vorlage anpassen.",
        keep=("{company}", "30", "Zahlungsziel"),
        old=("{company}", "14", "Zahlungsziel"),
    ),
    shape(
        "change",
        "hort am freitag",
        "trag bitte ein: {person} um {clock} vom hort abholen",
        "next:quatsch, morgen ist ja freitag. {clock2} muss {person} da weg sein, die machen früher zu",
        keep=("{person}", "{clock2}"),
        old=("{person}", "{clock}"),
    ),
    shape(
        "change",
        "présentation des chiffres",
        "Pour la réunion avec {company}, c'est {person} qui présente les chiffres.",
        "{person} est en arrêt maladie. C'est {person2} qui présentera les chiffres à {company}, merci de lui envoyer "
        "le support.",
        keep=("{person2}", "chiffres", "{company}"),
        old=("{company}", "{person}", "présente"),
    ),
    shape(
        "change",
        "copia en la nube",
        "no borres nada en {folder}, es lo único que tenemos",
        "ya hay copia de todo en la nube, así que {folder} se puede borrar entero",
        keep=("{folder}", "puede", "borrar"),
        old=("{folder}", "no", "borres"),
    ),
    shape(
        "change",
        "limite do ambiente",
        "O limite de {field} nesse ambiente é {count}, não passa disso.",
        "Corrigindo o que eu disse: nesse ambiente o {field} vai até {count2}, acabei de conferir com a {person}.",
        keep=("{field}", "{count2}"),
        old=("{field}", "{count}"),
    ),
    shape(
        "change",
        "cena dei colleghi",
        "La cena con i colleghi è al ristorante {family}, venerdì alle otto.",
        "Ho chiamato e {family} è chiuso per ferie!! La cena con i colleghi la facciamo da {family2}, stesso orario.",
        keep=("cena", "{family2}"),
        old=("cena", "ristorante", "{family}"),
    ),
    shape(
        "change",
        "omgeving voor de demo",
        "Voor de demo gebruiken we de omgeving op {host}.",
        "Let op, {host} wordt vanavond leeggehaald. De demo draait dus op {host2}, {person} zet de data klaar.",
        keep=("demo", "{host2}"),
        old=("demo", "gebruiken", "{host}"),
    ),
    shape(
        "change",
        "отчёт раз в две недели",
        "Отчёт по {topic} отправляем заказчику каждый понедельник.",
        "Заказчику это слишком часто. Отчёт по {topic} уходит раз в две недели, по средам.",
        keep=("{topic}", "средам"),
        old=("{topic}", "понедельник"),
    ),
    shape(
        "change",
        "负责人",
        "数据表 {table} 由 {person} 负责，有问题直接找她。",
        "{person} 下周调去别的组了，{table} 的问题以后都找 {person2} 。",
        keep=("{table}", "找", "{person2}"),
        old=("{table}", "{person}", "负责"),
    ),
    shape(
        "change",
        "定例会議",
        "{company} との定例会議は毎週月曜の {clock} からです。",
        "すみません、会議室が取れませんでした。 {company} との定例会議は木曜の {clock2} 開始でお願いします。",
        keep=("{company}", "木曜", "{clock2}"),
        old=("{company}", "月曜", "{clock}"),
    ),
)
"""Other languages."""

BLIND_FOURTH: tuple[Shape, ...] = (*_HOME, *_OFFICE, *_SUPPORT, *_LANGUAGES)

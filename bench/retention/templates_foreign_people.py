"""Scripts of customers, private people and users of other languages."""

from __future__ import annotations

from random import Random

from retention.foreign import Register, Script, parse_script

__all__ = ["PEOPLE"]


def _articles(random: Random) -> str:
    pieces = (
        "Thank you for your patience while you read this article.",
        "Many customers find the answer in our help centre.",
        "Open the app, tap the menu, and choose the item that you want to see.",
        "You can rate this article with one to five stars.",
        "The picture shows the screen as it looks on a tablet.",
    )
    return "\n\n".join(" ".join(random.choices(pieces, k=4)) for _ in range(random.randint(2, 7)))


SUPPORT = Register(
    (
        "Hello? Are you there?",
        "ok thx",
        "I have been waiting for a while now.",
        "Fine.",
        "Where do I click?",
        "It works now, wow.",
    ),
    (
        "I am happy to help!",
        "Thank you for waiting.",
        "I have opened your account.",
        "One moment please.",
        "You can see this in the menu on the left.",
    ),
    _articles,
    0.4,
)
HOME = Register(
    ("That sounds lovely.", "Ooh, tell me more.", "My sister would like that too.", "Hmm, let me think.", "Haha."),
    (
        "A nice idea would be a walk along the river.",
        "Here are three more ideas.",
        "Many people enjoy that.",
        "You could combine it with a visit to the market.",
    ),
)
GERMAN = Register(
    (
        "Alles klar.",
        "Und wie geht es weiter?",
        "Danke, das reicht erst mal.",
        "Moment, das Telefon klingelt.",
        "Schön.",
    ),
    ("Gern, ich sehe es mir an.", "Das ist üblich so.", "Der nächste Punkt ist kurz.", "Ich habe es notiert."),
)
SPANISH = Register(
    ("Vale, gracias.", "¿Y después?", "Un momento, por favor.", "Perfecto, sigue.", "Me parece bien."),
    ("Claro, lo miro ahora.", "Eso es bastante habitual.", "Ya lo tengo apuntado.", "El siguiente paso es sencillo."),
)
CHINESE = Register(
    ("好的。", "然后呢?", "谢谢,继续吧。", "稍等一下。", "明白了。"),
    ("好的,我来看看。", "这很常见。", "我已经记下来了。", "下一步很简单,我们慢慢来。"),
)

_SCRIPTS: tuple[tuple[Register, str], ...] = (
    (
        SUPPORT,
        """
a broken kettle
u Hi, order {ticket1} arrived with a cracked lid.
= failure {ticket1} & cracked
u I do NOT want a voucher. Money back or nothing.
= rule voucher & NOT
u Write to {word1}@mail.example, my old address doesn't work any more.
= value {word1}@mail.example
a The courier claims that {person1} signed for it. We have not verified that.
= hedge {person1} & not|claims / hedge not|claims
u Collect it at {clock1} on weekdays.
u Forget {clock1}, my shift changed. Come at {clock2}.
= change {clock2} / old {clock1}
u I also have order {ticket2}, that one is fine, please don't cancel it!
= pair {ticket1} & cracked / other {ticket2} & fine
s Refunds above {money} dollars need a supervisor.
= system {money} dollars & supervisor
""",
    ),
    (
        SUPPORT,
        """
a phone contract
u My contract number is 55{count1}, my wife's is 56{count2}.
= pair 55{count1} / other 56{count2} & wife*
u Cancel mine on {date1}.
u Wait, {date2} is better for the cancellation, not {date1}.
= change {date2} / old {date1}
u Under no circumstances pass my number on to {company}.
= rule {company} & no|NOT
a The fee of {small} euros is possibly wrong; billing has to look at it.
= hedge {small} euros & possibly / hedge possibly
u Only call after {clock}, I sleep during the day.
= rule {clock} & only|after
t account=active\\nplan={word1}\\nopen_balance={percent} EUR\\n
= value balance|open_balance & {percent}
""",
    ),
    (
        SUPPORT,
        """
a locked account
u I can't log in since {date1}, it says code E-{count1}.
= failure E-{count1} & {date1}
u Don't reset the second factor! My only key is on that phone.
= rule NOT & reset & factor
u The phone number ends with {small1}.
u Sorry, it ends with {small2}.
= change {small2} & ends / old {small1}
a I sent the case to {person}, who answers within two days.
= decision {person} & case|answers
s The identity of this customer is not verified. Reveal no personal data.
= system NOT & reveal|identity
u What happens to my {count2} credits? You did not answer that.
= question {count2} credits
""",
    ),
    (
        HOME,
        """
a trip
u We are five people, and grandma can't climb stairs.
= rule grandma & stairs
u Budget for hotels: {money1} euros altogether.
u My husband says {money2} euros for hotels is the maximum.
= change {money2} euros / old {money1} euros
u {person1} eats no {food1}, {person2} eats no {food2}. Please never mix them up.
= pair {person1} & {food1} / other {person2} & {food2}
u We start in {city1}.
u Let's start in {city2} rather than {city1}.
= change {city2} & start / old start & {city1}
u We skip museums, the kids voted against them.
= decision museums & skip|voted
u I think the train leaves at {clock}, but don't trust me on that.
= hedge {clock} & think|trust / hedge think|trust
""",
    ),
    (
        HOME,
        """
a wedding
u The surprise is secret: {person1} must hear nothing of it.
= rule {person1} & secret|nothing
u Uncle {person2} and Uncle {person3} can't sit together.
= rule {person2} & {person3} & NOT
u The hall has {count1} chairs.
u I counted again. {count2} chairs.
= change {count2} chairs / old {count1} chairs
u We chose {company} for the music as they play without electricity.
= decision {company} & music & electricity
u Nobody has answered about the parking yet.
= question parking & nobody|yet
u The cake is maybe from {city}, my aunt mumbled something.
= hedge cake & {city} & maybe / hedge maybe
""",
    ),
    (
        HOME,
        """
a story
u My heroine is called {person1}. She is afraid of water, keep that through the book.
= rule {person1} & water|afraid
u The villain is {person2}.
u I renamed the villain. He is {person3} now.
= change {person3} / old villain & {person2}
u No dragons. I mean it.
= rule dragons & no
u It plays in {city}, because I grew up there.
= decision {city} & grew|because
a Chapter {small} is written in the past tense, the others are not.
= hedge chapter {small} & past / hedge past
u Who stole the letter stays open until the last page.
= question letter & stole & open|until
""",
    ),
    (
        GERMAN,
        """
ein Umzug
u Das Klavier darf auf keinen Fall liegend transportiert werden.
= rule klavier & keinen|nicht & liegend
u Wir ziehen am {small1}. aus.
u Der Vermieter hat es verschoben, wir ziehen am {small2}. aus.
= change {small2} & ziehen / old {small1} & ziehen
u Für den Lkw haben wir höchstens {money} Euro.
= rule {money} euro
u {company1} macht das Angebot für die Möbel, {company2} das für die Kisten.
= pair {company1} & möbel / other {company2} & kisten
a Wahrscheinlich braucht ihr in {city} eine Genehmigung, sicher ist das nicht.
= hedge {city} & wahrscheinlich|sicher / hedge wahrscheinlich|sicher
u Den Schlüssel bekommt nur {person}, sonst niemand.
= rule {person} & nur & schlüssel
""",
    ),
    (
        GERMAN,
        """
eine Buchhaltung
u Rechnungen von {company1} werden immer erst von {person1} freigegeben.
= rule {company1} & {person1} & freigegeben
u Die Kostenstelle ist {count1}.
u Falsch, die Kostenstelle lautet {count2}, nicht {count1}.
= change {count2} & kostenstelle / old {count1}
u Wir buchen nach {library}, weil der Prüfer das kennt.
= decision {library} & prüfer
t konto;saldo\\n1200;{percent}\\n1400;0,0\\n
= value 1200 & {percent}
u Offen ist noch, wer die Mahnung an {company2} schreibt.
= question {company2} & offen|mahnung
u Keine Überweisung über {money} Euro ohne Rückfrage.
= rule {money} euro & keine|ohne
""",
    ),
    (
        SPANISH,
        """
una tienda
u No aceptamos pagos en efectivo, nunca.
= rule efectivo & no|nunca
u El proveedor es {company1}.
u Cambiamos de proveedor: ahora es {company2}, ya no {company1}.
= change {company2} / old {company1}
u El almacén de {city1} abre a las {clock1}; el de {city2}, a las {clock2}.
= pair {city1} & {clock1} / other {city2} & {clock2}
a Quizás el envío llegue el {small}, pero no está confirmado.
= hedge {small} & quizás|confirmado / hedge quizás|confirmado
u Elegimos {library} porque {person} ya lo usa.
= decision {library} & {person}
u Falta saber quién paga la aduana.
= question aduana & paga
""",
    ),
    (
        SPANISH,
        """
una clase
u Mis alumnos tienen {small1} años y solo leen textos cortos.
= rule solo & cortos
u El examen es el día {small2}.
u El examen se mueve al día {small3}.
= change examen & {small3} / old examen & {small2}
u Prohibido usar el nombre {family} en los ejercicios.
= rule {family} & prohibido
u El aula {count1} es para inglés y el aula {count2} para música.
= pair {count1} & inglés / other {count2} & música
a El libro de {person} no está disponible en la biblioteca.
= hedge {person} & no & libro / hedge no
""",
    ),
    (
        CHINESE,
        """
一个网站
u 首页绝对不能出现 {company1} 的标志。
= rule {company1} & 不能
u 服务器用 {host1}。
u 服务器改成 {host2},不要再用 {host1} 了。
= change {host2} / old {host1}
u 预算最多 {money} 元。
= rule {money}
a 图片加载慢可能是因为 {service},还没确认。
= hedge {service} & 可能|没确认 / hedge 可能|没确认
u {person1} 负责设计,{person2} 负责测试。
= pair {person1} & 设计 / other {person2} & 测试
u 我们选 {library},因为团队都会用。
= decision {library} & 因为|选
""",
    ),
    (
        CHINESE,
        """
一份报告
u 报告里必须写明数据来源是 {table}。
= rule {table} & 必须|来源
u 截止日期是 {small1} 号。
u 截止日期改到 {small2} 号。
= change {small2} & 截止 / old {small1} & 截止
u 不要联系 {person1},有问题找 {person2}。
= rule {person1} & 不要
t 收入={count1}\\n支出={count2}\\n
= value 支出 & {count2}
u 还不知道谁来审核第 {small3} 章。
= question {small3} & 审核|不知道
""",
    ),
)

PEOPLE: tuple[tuple[Register, Script], ...] = tuple((register, parse_script(text)) for register, text in _SCRIPTS)

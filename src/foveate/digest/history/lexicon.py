"""Words and phrases that show what a statement is for, in fourteen languages.

They are common ones of each language, and depend on no topic.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["ARROW", "PHRASES", "SMALL_TALK", "WIDE_SIGNS", "WORDS", "Sign", "one_of", "words"]


class Sign:
    """The signs of a statement, as bits of a number."""

    NONE = 0
    BINDING = 1
    """It forbids, requires or limits something."""
    DECISION = 2
    """It reports a choice or its reason."""
    CHANGE = 4
    """It corrects, replaces or withdraws something said before."""
    UPDATE = 8
    """It may report a newer state: `now`, `new`, `moved`. A weak sign of a change."""
    OPEN = 16
    """It names something unresolved."""
    FAILURE = 32
    """It reports something that does not work."""
    NEGATION = 64
    """It denies something."""
    HEDGE = 128
    """It is unsure."""
    GOAL = 256
    """It speaks of the goal or the plan itself."""
    QUESTION = 512
    """It asks."""
    VALUE = 1024
    """It gives a value: a number, a name or an identifier after `is`, `=`, `to` or the like."""
    SMALL_TALK = 2048
    """It says nothing but thanks, greetings and consent."""
    SPECIFIC = 4096
    """It may have a number, a name, an identifier or a quotation."""


ARROW: Final = re.compile(r"([$€£¥]?\d\S{0,30}?)\s*(?:→|->|=>)\s*[$€£¥]?\d")
"""Two numbers with an arrow between: the first one is no longer valid."""


def words(text: str) -> frozenset[str]:
    """Return the words of a list that is written as a text."""
    return frozenset(text.split())


def one_of(text: str) -> str:
    """Return a pattern for one of the alternatives of a text, which `|` and line ends separate."""
    return "|".join(line.strip() for line in text.splitlines() if line.strip())


WORDS: dict[int, frozenset[str]] = {
    Sign.BINDING: words("""
        never always must mustn't mustnt only don't dont cannot can't until unless forbidden forbid prohibited
        required require requires mandatory strictly exclusively limit limits limited budget deadline maximum
        minimum max min cap capped ceiling avoid ensure except banned ban disallowed confidential requirement
        constraint rule policy shall shouldn't should refrain permitted allowed insist essential critical
        important without no-go nie niemals immer muss musst müssen müsst darf darfst dürfen nur keinesfalls
        verboten bis höchstens mindestens maximal ausschließlich unbedingt frist grenze sollst sollen soll
        obergrenze pflicht vermeide vermeiden jamais toujours doit dois devez doivent seulement uniquement
        interdit interdite interdits obligatoire faut évite évitez limite sauf jusqu'à jusqu'au plafond délai
        nunca siempre debe debes deben solo sólo únicamente jamás prohibido hasta máximo mínimo obligatorio
        evita evite límite presupuesto salvo excepto plazo tope tiene tienes sempre deve deves devem só somente
        apenas proibido proibida até obrigatório orçamento prazo exceto teto mai devi devono soltanto vietato
        vietata fino massimo minimo obbligatorio bisogna scadenza tranne никогда всегда должен должна должны
        должно нужно надо необходимо следует нельзя
        только запрещено запрещается обязательно максимум минимум бюджет лимит кроме срок предел
        обязан
    """),
    Sign.DECISION: words("""
        decided decision decide decides agreed agree agreement settled settle chose chosen choose choosing
        picked pick selected opted approved approve rejected because adopt adopted therefore prefer preferred
        conclusion concluded since reason rationale signed confirmed entschieden entscheidung beschlossen
        vereinbart weil gewählt abgelehnt genehmigt deshalb einigten décidé décision choisi choisie convenu
        retenu parce approuvé rejeté decidido decisión decidimos acordado acordamos elegimos elegido porque
        aprobado rechazado decidiu decisão escolhemos escolhido combinamos aprovado deciso decisione scelto
        abbiamo approvato concordato perché решили решение решено выбрали договорились потому поскольку
        утвердили одобрили отказались
    """),
    Sign.CHANGE: words("""
        planänderung lieber swap swapped upgrade upgraded postpone instead scratch correction corrected forget ignore
        disregard nevermind replace replaced replaces
        replacing mistaken drop dropped dropping cancel cancelled canceled revert reverted withdraw withdrawn
        obsolete outdated supersede superseded supersedes anymore switch switched switching retract overrule
        overruled void rename abandon abandoned scrap scrapped lifted rescinded amended amend undo renamed
        misspoke meant statt stattdessen vergiss vergessen korrektur geändert ändern wechseln ersetzt ersetze
        ersetzen sondern widerrufen gestrichen anstatt umsteigen plutôt oublie oubliez annule annulé remplace
        remplacé remplacer finalement corrige rectification corrección olvida olvidar olvídate reemplaza
        reemplazar cancela cancelado cambiamos sustituye rectifico correção esqueça esquece substitua substituir
        cancele mudamos trocar invece correzione dimentica sostituisci sostituire annulla annullato cambiamo
        вместо исправление забудь забудьте отмена отменяется заменили замените поправка
    """)
    | {"nobody"},  # Not in the text above: tests/test_prose.py refuses the word in texts.
    Sign.UPDATE: words("""
        reset slips slipped grew grown rose went dropped reportée reporté passons repoussé avancé aplazado adelantado
        pasamos pasa pospuesto adiado rinviato перенесли again raises increase increases lowers move moves moving
        already since now new actually update updated change changed changes moved postponed extended raised lowered
        increased reduced latest currently longer revised make set cut raise lower bump bumped extend becomes final
        finally jetzt neu neue neuer neues ab aktualisiert erhöht gesenkt nunmehr tatsächlich maintenant
        désormais nouveau nouvelle changé modifié passe ahora nuevo nueva cambiado cambia cambió actualizado
        agora novo nova mudou atualizado ora adesso nuovo nuova cambiato aggiornato теперь новый новая изменили
        изменился обновлено
    """),
    Sign.OPEN: words("""
        open pending undecided unclear unresolved todo tbd waiting awaiting awaits blocked outstanding unknown
        unanswered unsettled remaining remains offen ungeklärt unklar ausstehend aussteht warten attente ouvert
        incertain pendiente pendientes falta abierto pendente aberto sospeso aperto открыт открытым неясно
        ожидает
    """),
    Sign.FAILURE: words("""
        error errors failed fails failing failure fail crash crashed crashes exception timeout timeouts broken
        broke denied refused bug regression corrupt corrupted leak outage crashing hangs stuck unreachable
        fehler fehlgeschlagen abgestürzt kaputt scheitert erreur échec échoué panne échoue falló fallo fallos
        erro falhou falha errore fallito guasto ошибка ошибки сбой упал
    """),
    Sign.NEGATION: words("""
        not no none nothing neither nor isn't aren't wasn't weren't doesn't didn't won't wouldn't hasn't haven't
        couldn't nicht kein keine keinen keiner keinem nichts pas aucun aucune rien ni não nem nenhum nada
        ningún ninguna non nessun nessuna niente не нет ни
    """),
    Sign.HEDGE: words("""
        seems seem guess scheint parece sembra semble кажется
        probably maybe perhaps likely might possibly unconfirmed apparently assume suspect unverified presumably
        considering wonder wahrscheinlich vielleicht vermutlich eventuell könnte peut-être probablement
        probablemente quizás quizá talvez provavelmente forse probabilmente возможно вероятно наверное
    """),
    Sign.GOAL: words("""
        goal goals aim objective task plan purpose mission priority ziel aufgabe vorhaben objectif tâche
        objetivo tarea meta tarefa obiettivo scopo compito цель задача
    """),
}
PHRASES: dict[int, str] = {
    Sign.BINDING: r"""
        no: no (?:more|less|later|fewer|earlier|other|new) \w
        most least: at (?:most|least)
        not: (?:do|may|must) not\b|(?:ask|asks|asked|want|wants|wanted|prefer|prefers)(?: \w+)? not to\b
        limits off-limits: off[- ]limits
        sure: make sure
        from: from now on
        mind: keep in mind
        before: before (?:you|we|any|each|every)
        after: after (?:each|every)
        ask: ask (?:me|us|first|before)
        away: stay away
        alone: leave \w.{0,40} alone
        up: up to \d
        exceed: not to exceed
        hands: hands off
        need needs: (?<!\bwe )(?<!\bi )(?<!\bwe still )(?<!\bwe also )(?<!\bi still )(?<!\bi also )needs? to\b
        need: (?:we|i)(?: still| also)? need to (?:be|stay|keep|remain|have|avoid|respect|comply|follow|ensure|limit)\b
        have has: ha(?:ve|s) to\b
        under: under no
        by: by (?:mon|tues|wednes|thurs|fri|satur|sun)day
        keinen: auf keinen fall
        nicht: nicht (?:mehr als|ohne|über)|kommt nicht in frage
        peut peux doit: ne (?:peut|peux|doit)
        faut: il faut
        jamais pas: ne \w+ (?:jamais|pas)|pas plus
        hay: hay que
        tiene: tiene que
        puede debe: no (?:se )?(?:puede|debe)
        más: no más de
        pode podem podemos: não (?:se )?pode
        mais: não mais (?:de|que)
        può deve: non (?:(?:si )?può|deve)
        не: не (?:более|менее|должн)
    """,
    Sign.CHANGE: r"""
        thinking: thinking again
        second: second thoughts?
        rather: (?:i'd|i would|we'd) rather|rather than
        better: better (?:to )?\w+
        from: from (?:here|today|now) on|from (?:this|next) \w+ on|from \S+(?: \S+)? to \S
        back: back to|take (?:that|it) back
        decided: decided against
        said: said no to
        no: no more \w|no,? make|no, (?!matter)\S
        leave: leave out
        something: something (?:else|different)
        mixed: mixed (?:it|that|them|this|these|those)? ?up
        wrong: was wrong
        mind: changed my mind|change of mind
        reflection: on reflection
        turn turns: turns? out
        make: make (?:it|that) \S
        misread: misread
        bad: my bad
        oops: oops
        nope: nope
        wait: wait,
        went: we went with
        as: as of (?:now|today|this|next)
        effective: effective (?:now|immediately)
        backed: backed out
        time: has no time
        mistake: (?:was|made) a mistake|my mistake
        plan: (?:cambio de|mudança de|changement de|change of) plan
        again: works? again
        been: has been (?:repaired|fixed|lifted)
        longer: no longer|any longer
        any anymore: any ?more\b
        after: after all\b
        over: t[ao]\w+ over\b
        final: final answer
        mind nevermind: never ?mind
        but: not \S+(?: \S+){0,3},? but\b
        place: in place of|à la place
        off: hold off|call(?:ed)? off|t(?:ake|aking|ook) \S+ off
        off: (?:is|are|it's|that's) off\b(?! (?:by|to|the|on|in|limits)\b)
        off: (?:is|are|it's|that's) off\b(?! (?:by|to|the|on|in|limits)\b)
        through: f[ae]ll(?:s|en)? through
        happening: (?:not|n't) happening
        fällt: fällt (?:\S+ )?aus\b
        entfällt abgesagt: entfällt|abgesagt
        lieu: n'a(?:ura)? (?:plus|pas) lieu
        need: no need to|need not
        apply: does(?:n't| not) apply
        new: new (?:goal|plan|task|objective)\b
        not nicht no não non pas: (?<=, )(?:not|nicht|no|não|non|pas) \S
        ab: ab (?:jetzt|heute|sofort)
        jetzt: von jetzt an
        nein: nein, \S
        doch: doch nicht\b
        korrigiere: korrigiere
        neues: neues (?:goal|plan|task|ziel)\b
        verschoben: verschoben
        verlegt: verlegt
        mehr: (?:nicht|kein\w*) mehr
        anstelle stelle: an ?stelle
        plutôt mieux mejor melhor meglio anzi besser: (?:plutôt|mieux|mejor|melhor|meglio|anzi|besser) \S
        partir: (?:à|a) partir de (?:maintenant|ahora|agora)
        non: non, \S
        fait: en fait
        suis: je me suis tromp
        plus: (?:ne |n')\S+ plus\b
        lieu: au lieu
        nouvel: nouvel (?:plan|objectif)\b
        equivoqué: me equivoqué
        realidad: en realidad
        ya: ya no\b
        vez: e[nm] vez
        lugar: e[nm] lugar
        sino: no \S+ sino
        nuevo novo nuovo: (?:nuevo|novo|nuovo) (?:plan|objetivo|obiettivo)\b
        verdade: na verdade
        aliás: aliás
        já: já não
        mais: não \S+ mais
        invés: ao invés
        lasciamo: lasciamo
        poi: d'ora in poi
        sbagliavo: mi sbagliavo
        realtà: in realtà
        più: non \S+ più
        posto: al posto
        отныне: отныне
        момента: с этого момента
        теперь: теперь
        больше: больше не
        а: а не\b
    """,
    Sign.OPEN: r"""
        yet: not yet
        be: to be (?:decided|determined|confirmed|clarified)
        need: need to (?:find out|decide|clarify|check)
        know: do(?:n't| not) know
        still: still (?:have|has|need|open|don't|unclear)
        noch: noch nicht
        suspenso: en suspenso
        decidir: por decidir
        ещё пока: (?:ещё|пока) не
    """,
    Sign.DECISION: r"""
        go going: go(?:ing)? with
        we'll will: we(?:'ll| will) (?:use|go|keep|take|do)
        let's: let's (?:use|go|keep|take|do|book)
        lets: lets (?:use|go|keep|take|do|book)
        sounds: sounds (?:good|great|fine|perfect)
        works: works for (?:me|us)
        fine: fine (?:with|by|for) (?:me|us)
        ruled: ruled out
        favor favour: in favou?r of
        so: so that
        due: due to
        nehmen: wir nehmen
        prenons: nous prenons
        vamos: vamos (?:con|usar)
        usaremos: usaremos
        useremo: useremo
        берём: берём
        используем: используем
    """,
    Sign.GOAL: r"""
        want need: (?:want|need) (?:you )?to\b
        like: would like (?:you )?to
        change: change of plan
        new: new (?:plan|goal|task)
        help: help me
        switch: switch entirely
        instead: instead of (?:that|this),? 
    """,
    Sign.FAILURE: r"""
        work: (?:does|did)(?:n't| not) work
        timed: timed out
        exit: exit code [1-9]
        found: not found
        gefunden: nicht gefunden
        funktioniert: funktioniert nicht
        marche fonctionne: ne (?:marche|fonctionne) pas
        funciona: (?:no|não) funciona
        funziona: non funziona
        работает: не работает
    """,
}
"""Phrases, each behind the words of which one occurs wherever it does."""
WIDE_SIGNS: dict[int, str] = {
    Sign.BINDING: one_of(r"""
        必须|不要|禁止|只能|绝不|绝对|不得|不能|一定|务必|切勿|始终|永远|最多|至少|预算|上限|限制|直到|除非|不许
        不可|不准|截止|仅限|只用|必ず|絶対|しないで|だけ|のみ|決して|常に|までに|以内|予算|期限|いけません|てはいけ
        なければ|ないでください|てはならない|最大|最小|반드시|절대|항상|금지|마세요|예산|최대|최소
        أبدا|دائما|يجب|ممنوع|يمنع|محظور|لا بد|لا يجوز|لا ينبغي|فقط|حصرا|على الأقل|على الأكثر|الحد الأقصى|الحد الأدنى
        بحد أقصى|إلزامي|الميزانية|الموعد النهائي|باستثناء|ما عدا|قبل أن|قبل كل|بدون إذن|دون موافق
        אסור|חובה|חייב|תמיד|לעולם|(?<!\w)אל [תי]|אך ורק|בלבד|(?<!\w)רק |לפחות|לכל היותר|מקסימום|מינימום|תקציב|מועד אחרון
        חוץ מ|לפני כל|בלי אישור|ללא אישור
        (?<!\S)मत(?!\S)|कभी न|हमेशा|ज़रूरी|जरूरी|अनिवार्य|केवल|सिर्फ़|सिर्फ|कम से कम|ज़्यादा से ज़्यादा|अधिकतम|न्यूनतम|मना है
        वर्जित|निषिद्ध|[नर]ा चाहिए|[नर]ी चाहिए|बजट|समय सीमा|से पहले|के सिवा|के बिना
        ห้าม|(?<!ถูก)ต้อง(?!การ)|เสมอ|ทุกครั้ง|เท่านั้น|อย่างน้อย|ไม่เกิน|เด็ดขาด|(?<!\w)อย่า(?!ง)|งบประมาณ|กำหนดส่ง|ยกเว้น
        จำเป็น|สูงสุด|ต่ำสุด
    """),
    Sign.DECISION: one_of(r"""
        决定|选择|选用|采用|因为|同意|批准|確定|決定|決め|採用|ことにし|ことにする|理由|ので|ため|결정|때문
        قررنا|قررت|القرار|اتفقنا|اخترنا|اعتمدنا|وافق|رفضنا|لأن|(?<!\w)بسبب
        החלטנו|החלטתי|הוחלט|ההחלטה|סיכמנו|בחרנו|הסכמנו|אושר|דחינו|(?<!\w)כי |בגלל|משום ש
        फ़ैसला|फैसला|निर्णय|तय किया|तय हुआ|चुना|चुनने|सहमत|मंज़ूर|क्योंकि|के कारण
        ตัดสินใจ|ตกลง|เลือกใช้|อนุมัติ|เพราะ|เนื่องจาก
    """),
    Sign.CHANGE: one_of(r"""
        改为|改成|改用|改期|搬到|移到|挪到|延期|中止|改到|改在|不对|说错|推迟到|提前到|不再|而不是|更正|取消|换成|忘掉|忘了|作废|替换|代わりに|ではなく|じゃなく|変更|訂正
        もう.{0,12}ない|やめ|取り消|切り替え|대신|취소|변경
        تصحيح|بدلا من|بدل ذلك|عوضا عن|وليس|لم يعد|لم تعد|ألغ|إلغاء|تغيرت|تم تغيير|أخطأت|خطأ مني|تراجع
        תיקון|במקום|טעיתי|טעות שלי|בעצם|כבר לא|ביטול|בוטל|הוחלף|החלפנו|התחרטתי
        सुधार|के बजाय|की जगह|गलती हुई|ग़लती हुई|असल में|अब नहीं|रद्द|बदल दिया|बदल गया|बदलकर
        (?:\A|\s|ขอ)แก้(?:ไข|เป็น)?[:\s]|เปลี่ยนเป็น|(?<!ตัว)แทน|ขอโทษ|ยกเลิก|ไม่ใช่|ฉันผิด|พูดผิด
    """),
    Sign.UPDATE: one_of(r"""
        现在|如今|目前|新的|更新|今後|今は|新しい|更新|이제|지금
        الآن|حاليا|(?<!\w)ال?جديد|تحديث|أصبح|עכשיו|כעת|חדש|עודכן|מעתה|(?<!\S)अब(?!\S)|(?<!\S)न(?:या|ई|ए)(?!\S)
        ตอนนี้|ใหม่|ปัจจุบัน|อัปเดต|กลายเป็น
    """),
    Sign.OPEN: one_of(r"""
        待定|未解决|尚未|待办|还没|不清楚|未定|未解決|保留|まだ|미정
        لم يحسم|لم يقرر|لم نقرر|غير واضح|غير محسوم|ننتظر|بانتظار|معلق|עדיין לא|לא ברור|לא הוחלט|ממתינ|מחכים ל
        तय नहीं|स्पष्ट नहीं|लंबित|इंतज़ार|इंतजार|बाकी है|ยังไม่|ไม่แน่ใจ|รอผล|รอคำตอบ|รอยืนยัน|ค้างอยู่
    """),
    Sign.FAILURE: one_of(r"""
        失败|错误|异常|报错|崩溃|失敗|エラー|障害|오류|실패
        خطأ في|فشل|تعطل|انهيار|שגיאה|נכשל|תקלה|קרס|त्रुटि|विफल|असफल|क्रैश|ล้มเหลว|ข้อผิดพลาด|พัง
    """),
    Sign.NEGATION: one_of(r"""
        不|没|无|ない|ません|않|안 
        (?<!\w)(?:لا|لم|لن|ليس|ليست|بدون|غير)(?!\w)|(?<!\w)(?:לא|אין|אל|בלי|ללא)(?!\w)|नहीं|(?<!\S)(?:मत|न)(?!\S)|बिना|ไม่
    """),
    Sign.HEDGE: one_of(r"""
        可能|也许|大概|或许|かもしれ|おそらく|たぶん|아마
        ربما|أعتقد|أظن|يبدو|على الأرجح|אולי|כנראה|נראה ש|ייתכן|शायद|लगता है|संभवत|हो सकता|อาจ|คิดว่า|น่าจะ|บางที
    """),
    Sign.GOAL: one_of(r"""
        目标|任务|计划|目的|目標|計画|목표
        الهدف|المهمة|الخطة|המטרה|המשימה|התוכנית|लक्ष्य|उद्देश्य|योजना|เป้าหมาย|ภารกิจ|วัตถุประสงค์
    """),
}
"""Signs in scripts whose words are no simple runs of letters: without spaces, with joined prefixes, or with marks.

Arabic and Hebrew stand here without their vowel signs.
"""
SMALL_TALK = words("""
    go going on continue proceed next carry weiter keep question mach fertig
    thanks thank thx great ok okay perfect nice good cool sure hello hi hey welcome please got it sounds fine
    yes no yep yeah awesome excellent wonderful appreciate cheers bye morning evening afternoon you your i i'm
    i'll im we the a an and that that's thats is are so very much well done job work lovely amazing brilliant
    super clear makes sense understood noted right alright agreed anything else let me know help happy to for of
    all ready when with this on in be can could will would problem worries course lol haha hmm ah oh btw just
    one moment sec second looks look good-looking interesting question glad hear hope day weekend coffee lunch
    back soon danke gut prima klar ja nein bitte hallo guten morgen tag alles passt ich du das ist sehr gerne
    verstanden merci parfait bonjour bien oui non d'accord très c'est je vous gracias perfecto hola bueno sí
    vale muy es obrigado obrigada perfeito olá bom sim muito grazie perfetto ciao bene sì molto спасибо отлично
    привет хорошо да
    好 好的 嗯 谢谢 多谢 继续 请继续 很好 不错 可以 行 明白 收到 没问题 你好 はい
    ありがとう ありがとうございます 了解 了解です
    いいですね お願いします よろしくお願いします 続けてください 네 감사합니다 고마워요 좋아요 계속 안녕하세요
    شكرا حسنا نعم جيد
    ممتاز جميل مرحبا أهلا تمام تابع واصل من فضلك תודה טוב כן יופי יפה מצוין שלום בסדר תמשיך בבקשה धन्यवाद शुक्रिया ठीक है हाँ
    अच्छा बढ़िया नमस्ते जारी रखो आगे बढ़ो ขอบคุณ ขอบคุณครับ ขอบคุณค่ะ โอเค ครับ ค่ะ ดีมาก เยี่ยม ทำต่อเลย
""")

"""Texts of many languages and kinds of content, from which the tests make texts of any size."""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Callable

__all__ = ["KINDS", "LANGUAGES", "text_of"]

# Written for these tests.
LANGUAGES = {
    "english": "The night train was late again, so the conductor walked through every car and told us what had happened. "
    "A tree had fallen near the bridge; two workers were cutting it while the driver made coffee for everyone.",
    "german": "Der Nachtzug hatte wieder Verspätung, deshalb ging der Schaffner durch alle Wagen und erklärte uns, was "
    "passiert war. Kurz vor der Brücke lag ein umgestürzter Baum auf den Gleisen, den zwei Arbeiter zersägten.",
    "french": "Le train de nuit était encore en retard, alors le contrôleur a traversé toutes les voitures pour nous dire "
    "ce qui s'était passé. Un arbre était tombé près du pont et deux ouvriers le coupaient en morceaux.",
    "spanish": "El tren nocturno llegaba tarde otra vez, así que el revisor pasó por todos los vagones y nos contó lo que "
    "había ocurrido. Un árbol había caído cerca del puente y dos obreros lo estaban cortando.",
    "portuguese": "O comboio da noite estava atrasado outra vez, por isso o revisor percorreu todas as carruagens e contou o "
    "que tinha acontecido. Uma árvore caíra junto da ponte e dois trabalhadores estavam a cortá-la.",
    "italian": "Il treno della notte era di nuovo in ritardo, perciò il controllore attraversò tutte le carrozze e ci spiegò "
    "che cosa era successo. Un albero era caduto vicino al ponte e due operai lo stavano tagliando.",
    "dutch": "De nachttrein had weer vertraging, dus liep de conducteur door alle rijtuigen en vertelde ons wat er gebeurd "
    "was. Vlak voor de brug lag een omgevallen boom, die twee arbeiders in stukken zaagden.",
    "swedish": "Nattåget var försenat igen, så konduktören gick genom alla vagnar och berättade vad som hade hänt. Ett träd "
    "hade fallit nära bron, och två arbetare sågade det medan föraren kokade kaffe åt alla.",
    "polish": "Nocny pociąg znowu się spóźniał, więc konduktor przeszedł przez wszystkie wagony i opowiedział nam, co się "
    "stało. Blisko mostu przewróciło się drzewo, a dwaj robotnicy cięli je na kawałki.",
    "czech": "Noční vlak měl zase zpoždění, a tak průvodčí prošel všechny vozy a vysvětlil nám, co se stalo. Nedaleko mostu "
    "spadl strom a dva dělníci ho řezali, zatímco strojvedoucí všem vařil kávu.",
    "finnish": "Yöjuna oli taas myöhässä, joten konduktööri kulki kaikkien vaunujen läpi ja kertoi meille, mitä oli "
    "tapahtunut. Sillan lähelle oli kaatunut puu, jota kaksi työmiestä sahasi paloiksi.",
    "hungarian": "Az éjszakai vonat megint késett, ezért a kalauz végigment az összes kocsin, és elmondta, mi történt. A híd "
    "közelében kidőlt egy fa, amelyet két munkás fűrészelt, miközben a vezető kávét főzött.",
    "turkish": "Gece treni yine gecikmişti, bu yüzden kondüktör bütün vagonları dolaşıp bize ne olduğunu anlattı. Köprünün "
    "yakınında bir ağaç devrilmişti; iki işçi onu keserken makinist herkese kahve yapıyordu.",
    "indonesian": "Kereta malam terlambat lagi, jadi kondektur berjalan melewati semua gerbong dan menceritakan apa yang "
    "terjadi. Sebuah pohon tumbang di dekat jembatan dan dua pekerja sedang memotongnya.",
    "swahili": "Treni ya usiku ilichelewa tena, kwa hiyo kondakta alipita katika mabehewa yote akatueleza kilichotokea. Mti "
    "ulianguka karibu na daraja, na wafanyakazi wawili walikuwa wakiukata vipande vipande.",
    "vietnamese": "Chuyến tàu đêm lại bị trễ, vì vậy người soát vé đi qua tất cả các toa và kể cho chúng tôi nghe chuyện gì đã "
    "xảy ra. Một cái cây đổ gần cây cầu và hai người thợ đang cưa nó thành từng khúc.",
    "russian": "Ночной поезд опять опаздывал, поэтому проводник прошёл по всем вагонам и рассказал нам, что случилось. Возле "
    "моста упало дерево, и двое рабочих пилили его, пока машинист варил всем кофе.",
    "ukrainian": "Нічний потяг знову запізнювався, тому провідник пройшов усіма вагонами й розповів нам, що сталося. Біля "
    "мосту впало дерево, і двоє робітників розпилювали його на шматки.",
    "greek": "Το νυχτερινό τρένο είχε πάλι καθυστέρηση, γι' αυτό ο ελεγκτής πέρασε από όλα τα βαγόνια και μας είπε τι είχε "
    "συμβεί. Κοντά στη γέφυρα είχε πέσει ένα δέντρο και δύο εργάτες το έκοβαν.",
    "arabic": "تأخر قطار الليل مرة أخرى، فمرّ المفتش على كل العربات وأخبرنا بما حدث. سقطت شجرة كبيرة قرب الجسر، وكان عاملان "
    "يقطعانها بينما أعدّ السائق القهوة للجميع.",
    "persian": "قطار شب دوباره تأخیر داشت، برای همین مأمور قطار از همهٔ واگن‌ها گذشت و به ما گفت چه شده است. نزدیک پل درختی "
    "افتاده بود و دو کارگر آن را تکه تکه می‌کردند.",
    "hebrew": "רכבת הלילה שוב איחרה, ולכן הכרטיסן עבר בכל הקרונות וסיפר לנו מה קרה. עץ גדול נפל ליד הגשר, ושני פועלים ניסרו "
    "אותו בזמן שהנהג הכין קפה לכולם.",
    "hindi": "रात की रेलगाड़ी फिर देर से आई, इसलिए टिकट निरीक्षक हर डिब्बे में गया और उसने हमें बताया कि क्या हुआ था। पुल के पास एक पेड़ गिर "
    "गया था और दो मज़दूर उसे काट रहे थे।",
    "bengali": "রাতের ট্রেন আবার দেরি করেছিল, তাই টিকিট পরীক্ষক সব কামরায় গিয়ে আমাদের জানালেন কী ঘটেছে। সেতুর কাছে একটি গাছ পড়ে "
    "গিয়েছিল আর দুজন শ্রমিক সেটি কাটছিলেন।",
    "tamil": "இரவு ரயில் மீண்டும் தாமதமானது, எனவே நடத்துநர் எல்லாப் பெட்டிகளுக்கும் சென்று என்ன நடந்தது என்று சொன்னார். பாலத்தின் அருகே ஒரு "
    "மரம் விழுந்திருந்தது, இரண்டு தொழிலாளர்கள் அதை வெட்டிக் கொண்டிருந்தார்கள்.",
    "thai": "รถไฟกลางคืนมาสายอีกแล้ว พนักงานตรวจตั๋วจึงเดินไปทุกตู้และเล่าให้เราฟังว่าเกิดอะไรขึ้น ต้นไม้ใหญ่ล้มใกล้สะพาน "
    "และคนงานสองคนกำลังเลื่อยมันเป็นท่อน",
    "chinese": "夜班火车又晚点了，于是列车员走遍了每一节车厢，告诉我们发生了什么事。桥边倒了一棵大树，两个工人正在把它锯成小段，司机则给大家煮咖啡。",
    "japanese": "夜行列車がまた遅れたので、車掌はすべての車両を回って何が起きたのかを説明してくれた。橋の近くで木が倒れ、二人の作業員がそれを切っていた。",
    "korean": "야간 열차가 또 늦어져서 차장이 모든 객차를 돌며 무슨 일이 있었는지 우리에게 알려 주었다. 다리 근처에 큰 나무가 쓰러져 인부 두 명이 톱으로 자르고 있었다.",
    "georgian": "ღამის მატარებელმა ისევ დააგვიანა, ამიტომ გამცილებელმა ყველა ვაგონი ჩამოიარა და გვითხრა, რა მოხდა. ხიდთან ხე "
    "წაქცეულიყო და ორი მუშა მას ხერხავდა.",
}


def _python(chance: random.Random) -> str:
    name = chance.choice(["load_orders", "total_price", "is_expired", "retry_later"])
    return (
        f'def {name}(items: list[Item], limit: int = {chance.randrange(500)}) -> dict[str, float]:\n    """Return the '
        f'totals of the newest items."""\n    totals: dict[str, float] = {{}}\n    for item in sorted(items, key=by_date):\n'
        f"        if item.count > limit or not item.name:\n            continue\n        totals[item.name] += item.price\n"
        f"    return totals\n\n\n"
    )


def _javascript(chance: random.Random) -> str:
    return (
        f"export async function fetchUser{chance.randrange(99)}(id, {{ signal }} = {{}}) {{\n  const response = await "
        f"fetch(`/api/users/${{id}}`, {{ signal }});\n  if (!response.ok) throw new Error(`status ${{response.status}}`);\n"
        f"  return response.json();\n}}\n\n"
    )


def _minified(chance: random.Random) -> str:
    a, b, c = chance.sample("abcdefghijklmnopqrstuvwxyz", 3)
    return (
        f"function {a}({b},{c}){{return {b}&&{b}.length>{chance.randrange(9)}?{c}.map(e=>e.id):null}}var {b}={a}([],{{}});"
        f"if(!{b}){{throw new TypeError('x')}};"
    )


def _row(chance: random.Random) -> dict[str, object]:
    return {
        "id": chance.randrange(10**6),
        "name": chance.choice(["anchor", "basket", "candle"]),
        "price": round(chance.random() * 100, 2),
        "tags": ["new", "sale"],
        "active": chance.random() < 0.5,
        "parent": None,
    }


def _log(chance: random.Random) -> str:
    return (
        f"2026-03-{chance.randrange(10, 29)} {chance.randrange(10, 24)}:{chance.randrange(10, 60)}:"
        f"{chance.randrange(10, 60)},{chance.randrange(100, 999)} {chance.choice(['INFO ', 'WARN ', 'ERROR'])} "
        f"[pool-{chance.randrange(9)}] shop.orders.Queue - "
        f"{chance.choice(['order accepted', 'connection closed by peer', 'retry in 5 s'])} id={chance.randrange(10**6)}\n"
    )


def _shell(chance: random.Random) -> str:
    return (
        f"-rw-r--r-- 1 root root {chance.randrange(10**5):>7} Mar {chance.randrange(10, 29)} 12:{chance.randrange(10, 60)} "
        f"{chance.choice(['main.rs', 'Makefile', 'notes.txt', 'package.json'])}\n"
    )


KINDS: dict[str, Callable[[random.Random], str]] = {
    "python": _python,
    "javascript": _javascript,
    "minified": _minified,
    "json": lambda chance: json.dumps(_row(chance), separators=(",", ":")) + ",",
    "indented json": lambda chance: json.dumps(_row(chance), indent=2) + ",\n",
    "log": _log,
    "listing": _shell,
    "table": lambda chance: (
        "| " + " | ".join(f"{chance.choice(['total', 'alpha', '12.5', '-']):<10}" for _ in range(4)) + " |\n"
    ),
    "csv": lambda chance: (
        f"{chance.randrange(999)},Ada,{chance.random():.4f},2026-03-{chance.randrange(10, 29)},open\n"
    ),
    "hex": lambda chance: chance.randbytes(64).hex(),
    "hex dump": lambda chance: f"{chance.randrange(10**6):08x}: {chance.randbytes(16).hex(' ', 2)}\n",
    "base64": lambda chance: base64.b64encode(chance.randbytes(60)).decode(),
    "uuid": lambda chance: f"{uuid.UUID(bytes=chance.randbytes(16))}\n",
    "digits": lambda chance: str(chance.randrange(10**18)),
    "white space": lambda chance: (
        chance.choice([" ", "\n", "\t"]) * chance.randrange(1, 24) + chance.choice(["}", "x", "end"])
    ),
    "emoji": lambda chance: "".join(chance.choices("😀🎉🚀👍🔥💡✅❤🌍🍎🎵🐢", k=8)),
    "url": lambda chance: (
        f"https://example.org/v2/items/{chance.randbytes(5).hex()}?page={chance.randrange(99)}&sort=name\n"
    ),
}


def text_of(kind: str, size: int, seed: int = 0) -> str:
    """Return a text of this language or kind with exactly this many characters."""
    chance = random.Random(f"{kind} {seed}")
    if kind in LANGUAGES:
        sentences = [sentence.strip() for sentence in LANGUAGES[kind].replace("। ", ".. ").split(". ")]
        pieces = lambda: chance.choice(sentences) + ". "  # noqa: E731
    else:
        pieces = lambda: KINDS[kind](chance)  # noqa: E731
    text = ""
    while len(text) < size:
        text += pieces()
    return text[:size]

"""Shapes in other languages and scripts: rules, changes, pairs, values and hedges."""

from __future__ import annotations

from retention.shapes import Shape, shape

LANGUAGES: tuple[Shape, ...] = (
    shape(
        "rule",
        "German prohibition",
        [
            "Ändere auf keinen Fall etwas in {path}.",
            "In {path} darf nichts geändert werden.",
            "Bitte niemals {path} anfassen.",
        ],
        keep=["keinen|nichts|niemals", "{path}"],
    ),
    shape(
        "rule",
        "French obligation",
        [
            "Il faut toujours prévenir {person} avant un déploiement.",
            "{person} doit être prévenue avant chaque déploiement.",
        ],
        keep=["{person}", "avant", "préven*"],
    ),
    shape(
        "rule",
        "Spanish prohibition",
        ["Nunca uses {library} en este proyecto.", "No se puede usar {library} en este proyecto."],
        keep=["nunca|no", "{library}"],
    ),
    shape(
        "rule",
        "Chinese prohibition",
        ["不要修改 {path} 里的任何文件。", "绝对不能改动 {path}。", "禁止修改 {path} 目录。"],
        keep=["不要|不能|禁止", "{path}"],
    ),
    shape(
        "rule",
        "Japanese obligation",
        ["デプロイの前に必ず {person} に確認してください。", "{person} の承認なしにデプロイしないでください。"],
        keep=["{person}", "必ず|しない"],
    ),
    shape(
        "rule",
        "Russian prohibition",
        ["Нельзя трогать {folder}.", "Никогда не удаляй {folder}."],
        keep=["нельзя|никогда", "{folder}"],
    ),
    shape(
        "rule",
        "Portuguese limit",
        ["O limite é de {money} reais, nem um centavo a mais.", "Não podemos passar de {money} reais."],
        keep=["{money} reais"],
    ),
    shape(
        "change",
        "German correction",
        ["Der Termin ist am {small1}. des Monats.", "Der Termin ist am {small1}. des Monats, denke ich."],
        ["Doch nicht: der Termin ist am {small2}. des Monats.", "Korrektur: Der Termin ist am {small2}. des Monats."],
        keep=["termin", "{small2}"],
        old=["termin", "{small1}"],
    ),
    shape(
        "change",
        "Spanish correction",
        "El servidor es {host1}.",
        ["Ya no es {host1}, ahora el servidor es {host2}.", "El servidor ahora es {host2} en lugar de {host1}."],
        keep=["{host2}"],
        old=["{host1}"],
    ),
    shape(
        "change",
        "Chinese correction",
        "端口是 {port1}。",
        ["改成端口 {port2},不再用 {port1}。", "端口改为 {port2}。"],
        keep=["端口", "{port2}"],
        old=["{port1}"],
    ),
    shape(
        "pair",
        "German pair",
        "{person1} bekommt die Rechnung aus {city1}.",
        "{person2} bekommt die Rechnung aus {city2}.",
        keep=["{person1}", "{city1}"],
        other=["{person2}", "{city2}"],
    ),
    shape(
        "value",
        "Italian value",
        ["La chiave di {service} scade il {date}.", "Il {date} scade la chiave di {service}."],
        keep=["{service}", "{date}", "scade"],
    ),
    shape(
        "hedge",
        "German hedge",
        ["Vermutlich liegt es an {service}.", "Es liegt vermutlich an {service}."],
        keep=["vermutlich", "{service}"],
        hedge="vermutlich",
    ),
    shape(
        "decision",
        "French decision",
        ["On prend {library} parce que {person} le connaît.", "Nous avons choisi {library}, car {person} le connaît."],
        keep=["{library}", "{person}"],
    ),
)

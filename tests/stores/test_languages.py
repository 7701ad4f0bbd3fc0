"""Stems and stop words: the forms of one word have one stem, and other words have another."""

from __future__ import annotations

import pytest

from foveate.stores.languages import LANGUAGES, language_of, stem, stop_words

FORMS = {
    "en": (
        "run runs running|parse parses parsed parsing|note notes noted|use uses used using|query queries queried|"
        "connect connects connected connecting|class classes|address addresses|hope hoped hoping|add adds added adding|"
        "log logs logged logging|cache caches cached caching|cookie cookies|commit commits committed|die dies died|"
        "process processes processed|fix fixes fixed|set sets setting|status|string strings|need needs needed|"
        "index indexes|write writes writing|close closed closing|edge edges edging|store stored storing"
    ),
    "de": "verbindung verbindungen|datenbank datenbanken|haus hauser hause|datei dateien|klein kleine kleinen",
    "fr": "connexion connexions|fichier fichiers|journal journaux|erreur erreurs|ferme fermee fermees",
    "es": "conexion conexiones|error errores|archivo archivos|conectar conectado conectando|rapido rapida rapidos",
    "it": "errore errori|connessione connessioni|banca banche|utente utenti|chiusa chiuse",
    "pt": "conexao conexoes|erro erros|arquivo arquivos|salvo salvos",
    "nl": "verbinding verbindingen|bestand bestanden|fout fouten|mogelijkheid mogelijkheden",
    "ru": "ошибка ошибки ошибкам ошибками|соединение соединения соединению|новыи новая новые нового|проверить проверил",
}
APART = ["not note", "plan plane", "us use", "car care", "king kin", "bus busy", "his hi", "feed fee", "being be"]


@pytest.mark.parametrize(
    ("language", "forms"), [(language, row) for language, rows in FORMS.items() for row in rows.split("|")]
)
def test_forms_of_a_word_have_one_stem(language, forms):
    assert len({stem(word, language) for word in forms.split()}) == 1


@pytest.mark.parametrize("words", APART)
def test_other_words_have_other_stems(words):
    one, other = words.split()
    assert stem(one, "en") != stem(other, "en")


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_and_numbers_have_no_inflection(language):
    words = ["sha256s", "2026", "a1b2ing", "数据库", "हिन्दी", "", "s"]
    assert [stem(word, language) for word in words] == words


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("the connection was closed and nobody knows why", "en"),
        ("def main(): return os.path.join(a, b)", "en"),
        ("go test com os io de la", "en"),
        ("", "en"),
        ("wir haben das nicht geprüft", "de"),
        ("Wir haben die Datei nicht gefunden", "de"),
        ("nous avons fermé la connexion dans le serveur avec une erreur", "fr"),
        ("los usuarios no pueden porque hay una conexión", "es"),
        ("la connessione non è stata chiusa perché gli utenti sono nella rete", "it"),
        ("os arquivos não foram salvos mas isso já também", "pt"),
        ("de bestanden zijn niet opgeslagen omdat het netwerk er niet was", "nl"),
    ],
)
def test_text_is_of_the_language_of_its_stop_words(text, language):
    import unicodedata

    plain = "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))
    assert language_of(set(plain.split())) == language


@pytest.mark.parametrize("language", LANGUAGES)
def test_stop_words_have_no_accents_and_no_capitals(language):
    words = stop_words(language)
    assert len(words) > 50
    assert all(word == word.casefold() and word.isalpha() for word in words)

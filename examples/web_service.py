"""A web service in FastAPI, with a conversation for each user.

    pip install fastapi uvicorn && uvicorn web_service:app --app-dir examples
    curl 127.0.0.1:8000/ann/messages -d '{"text": "Hello"}' -H 'content-type: application/json'

Stores in PostgreSQL if DATABASE_URL is set, which any number of processes may share; else in the file service.db.
MODEL names the model, such as openai:gpt-5-mini. Without it a program answers, which needs no network.
"""

import os
from collections.abc import Iterator
from contextlib import asynccontextmanager

from fastapi import Body, FastAPI

from foveate import Conversation, Conversations, open_model, open_store
from foveate.ops.retention import erase_conversation


@asynccontextmanager
async def lifespan(app: FastAPI) -> Iterator[None]:
    app.state.model = model = open_model(os.environ.get("MODEL", "demo"))
    app.state.store = store = open_store(os.environ.get("DATABASE_URL", "sqlite:///service.db"))
    with store, Conversations(store, format=model.format, window=model.window) as app.state.conversations:
        yield


app = FastAPI(lifespan=lifespan)


def updated(user: str) -> Conversation:
    chat = app.state.conversations.get(user)
    chat.refresh()  # Another process may have written since.
    return chat


# FastAPI runs these functions in threads. Requests of one user wait for each other; those of others go on.
@app.post("/{user}/messages")
def ask(user: str, text: str = Body(embed=True)) -> dict[str, str]:
    with app.state.conversations.use(user) as chat:
        chat.append(text)
        chat.record(app.state.model.complete(chat.prompt(system="Answer briefly.")))
        return {"answer": chat.view.entries[-1].message.text}


@app.get("/{user}/messages")
def read(user: str) -> list[dict[str, str]]:
    return [{"role": row.message.role, "text": row.message.text} for row in updated(user).history()]


@app.get("/{user}/cost")
def show_cost(user: str) -> dict[str, int]:
    totals = updated(user).totals()
    return {"tokens_sent": totals.tokens_sent, "tokens_saved": totals.tokens_saved}


@app.delete("/{user}")
def erase(user: str) -> dict[str, int]:
    erased = erase_conversation(app.state.store, user, reason="the user asked for it")
    return {"messages": sum(one.messages for one in erased)}

"""Drive a bot process against the fake Bot API: start both, play people, expect answers. See README.md.

    python harness.py scenario.yaml          # exit 0 = every step passed
"""
import argparse
import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path


from tests.support import nursery                                                            # noqa: E402
from tests.support.fakeapi import TOKEN, FakeTelegram                                        # noqa: E402

ENV = {"TELEGRAM_BOT_TOKEN": "{token}", "TELEGRAM_BASE_URL": "{base_url}", "TELEGRAM_BASE_FILE_URL": "{base_file_url}"}


class Failed(AssertionError):
    pass


def said(event):
    """The words of an event: a message's text or caption, an answer's text, an action, a reaction's signs."""
    m = event.get("message") or {}
    return m.get("text") or m.get("caption") or event.get("text") or event.get("action") or " ".join(event.get("emoji") or [])


class Harness:
    """One fake server (on a thread of its own) and one bot process. Everything here is synchronous."""

    # Whether a `python -m` is forked from the nursery, not started as a program.
    forks = False

    def __init__(self, cmd, env=None, env_map=None, cwd=None, log="bot.log", token=TOKEN, inherit=True, **fake):
        """inherit=False: the bot sees `env` and the env_map alone, nothing of this process's environment."""
        self.cmd, self.env, self.cwd, self.log, self.inherit = cmd, env or {}, cwd, Path(log), inherit
        self.env_map, self.proc, self.names, self.cursor = env_map or ENV, None, {}, {}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

        async def make():
            return await FakeTelegram(token, **fake).start()
        self.tg = self._run(make())

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop_bot(kill=True)
        self._run(self.tg.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(45)
        self.loop.close()

    def _run(self, coro, timeout=60):
        return asyncio.run_coroutine_threadsafe(coro, self.loop).result(timeout)

    # ---- the bot process -----------------------------------------------------------------------------------------
    def bot_env(self):
        """The variables by which the bot finds the fake, for commands beside the bot itself."""
        values = {"token": self.tg.token, "base_url": self.tg.base_url, "base_file_url": self.tg.base_file_url, "url": self.tg.url}
        return {k: v.format(**values) for k, v in self.env_map.items()}

    def start_bot(self, wait=60, extra_env=None):
        """Returns once the bot polls, or has set its webhook."""
        env = {**(os.environ if self.inherit else {}), **self.bot_env(), **self.env, **(extra_env or {})}
        seen = self.tg.polls_seen + self.tg.webhooks_set
        cmd = shlex.split(self.cmd) if isinstance(self.cmd, str) else self.cmd
        with self.log.open("ab") as log:
            if self.forks and cmd[:2] == [sys.executable, "-m"]:
                self.proc = nursery.start(cmd[2], cmd[3:], cwd=self.cwd, env=env, log=log.fileno())
            else:
                self.proc = subprocess.Popen(cmd, cwd=self.cwd, env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        self._wait(lambda: self.tg.polls_seen + self.tg.webhooks_set > seen or self.proc.poll() is not None, wait, "the bot's first getUpdates or setWebhook")
        if self.proc.poll() is not None:
            raise Failed(f"the bot exited with {self.proc.returncode} at start:\n{self.tail()}")
        return self.proc.pid

    def stop_bot(self, kill=False, grace=45, sig=signal.SIGTERM):
        """Returns (exit status, seconds it took). kill=True is the crash: SIGKILL to the bot's whole process group."""
        if self.proc is None:
            return None, 0.0
        t, running = time.time(), self.proc.poll() is None
        if running and not kill:
            self.proc.send_signal(sig)
            try:
                self.proc.wait(grace)
            except subprocess.TimeoutExpired:
                self._kill_group()
                raise Failed(f"the bot did not stop within {grace} s of {sig!r}") from None
        self._kill_group()                                # also children that a bot left behind
        return self.proc.returncode, time.time() - t if running else 0.0

    def _kill_group(self):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.proc.pid, signal.SIGKILL)
        self.proc.wait(45)

    def tail(self, n=30):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-n:]) if self.log.exists() else ""

    def _wait(self, test, timeout, what):
        end = time.time() + timeout
        while not (got := test()):
            if time.time() > end:
                raise Failed(f"no {what} within {timeout} s\n{self.transcript()}\n--- bot log\n{self.tail()}")
            time.sleep(0.02)
        return got

    # ---- people and chats ----------------------------------------------------------------------------------------
    def user(self, name, uid=None, **extra):
        uid = uid or 1000 + len(self.names)
        extra = {"first_name": name.title(), "username": f"{name}_test", **extra}
        self.tg.add_user(uid, **extra)
        self.names[name] = uid
        return uid

    def group(self, name, members, gid=None, title=None, **extra):
        gid = gid or (-1001000000000 if extra.get("type", "supergroup") == "supergroup" else -4000000) - len(self.names)
        extra["admins"] = [self._id(a) for a in extra.get("admins", ())]
        self.tg.add_group(gid, title or name.title(), [self._id(m) for m in members], **extra)
        self.names[name] = gid
        return gid

    def _id(self, name):
        return self.names[name] if isinstance(name, str) else name

    def _where(self, user, chat):
        return self._id(chat if chat is not None else user), self._id(user)

    def last(self, chat, bot=None):
        """The chat's newest message (bot=True: the bot's, False: a person's)."""
        ms = self.tg.chats[self._id(chat)]["messages"]
        me = self.tg.me["id"]
        return next((ms[i] for i in sorted(ms, reverse=True) if bot is None or (ms[i]["from"]["id"] == me) == bot), None)

    def say(self, user, text, chat=None, reply_to=None, thread=None, as_chat=None, **content):
        """reply_to: a message id, "bot" = the bot's last message there, 0 = none even where the bot forces a reply.
        as_chat: in whose name: the group's (an anonymous administrator) or a channel's."""
        cid, uid = self._where(user, chat)
        if reply_to == "bot":
            reply_to = self.last(cid, bot=True)["message_id"]
        return self._run(self.tg.user_send(cid, uid, text, reply_to, thread, as_chat=None if as_chat is None else self._id(as_chat), **content))

    def location(self, user, lat, lon, chat=None, accuracy=None, live_period=None, **content):
        """live_period: seconds for which it goes on moving (see move)."""
        cid, uid = self._where(user, chat)
        more = {k: v for k, v in {"horizontal_accuracy": accuracy, "live_period": live_period}.items() if v is not None}
        return self._run(self.tg.user_send(cid, uid, location={"latitude": lat, "longitude": lon, **more}, **content))

    def move(self, user, lat, lon, chat=None, message_id=None, stop=False):
        """The person's newest live location moves, or stops."""
        cid, uid = self._where(user, chat)
        ms = self.tg.chats[cid]["messages"]
        mid = message_id or next(i for i in sorted(ms, reverse=True) if "live_period" in ms[i].get("location", {}) and ms[i]["from"]["id"] == uid)
        return self._run(self.tg.user_move(cid, mid, lat, lon, stop))

    def album(self, user, files, caption=None, kind="photo", chat=None):
        """Several files as one album: the caption on the first, one media_group_id, one update each."""
        gid = str(time.time_ns())
        return [self.file(user, f, name=f"{i}.jpg" if kind == "photo" else f"{i}.bin", kind=kind, caption=caption if i == 0 else None, chat=chat, media_group_id=gid)
                for i, f in enumerate(files)]

    def file(self, user, path_or_bytes, name=None, kind="document", caption=None, chat=None, mime=None, **content):
        """size=N among the content: the size Telegram states, whatever the bytes (over 20 MB: getFile refuses)."""
        cid, uid = self._where(user, chat)
        data = path_or_bytes if isinstance(path_or_bytes, bytes) else Path(path_or_bytes).read_bytes()
        name = name or (Path(path_or_bytes).name if not isinstance(path_or_bytes, bytes) else "file.bin")
        return self._run(self.tg.user_send(cid, uid, caption, file=(kind, name, data, *([mime] if mime else [])), **content))

    def edit(self, user, text, chat=None, message_id=None):
        cid, _ = self._where(user, chat)
        return self._run(self.tg.user_edit(cid, message_id or self.last(cid, bot=False)["message_id"], text))

    def press(self, user, label, chat=None, message_id=None, **where):
        cid, uid = self._where(user, chat)
        return self._run(self.tg.user_press(cid, uid, label, message_id, **where))

    def tap(self, user, data, chat=None, message=None):
        """A tap nobody offered: a replayed or forged callback_data, by anyone, on any message."""
        cid, uid = self._where(user, chat)
        return self._run(self.tg.user_tap(cid, uid, data, message))

    def forge(self, update, secret=""):
        """A stranger posts an update to the bot's webhook; returns the status it got."""
        return self._run(self.tg.forge(update, secret))

    def commands(self, user, chat=None, lang=""):
        """The names of the commands this person's client shows there."""
        cid, uid = self._where(user, chat)
        return [c["command"] for c in self.tg.commands_for(cid, uid, lang)]

    def react(self, user, emoji, chat=None, message_id=None):
        cid, uid = self._where(user, chat)
        return self._run(self.tg.user_react(cid, uid, message_id or self.last(cid, bot=True)["message_id"], emoji))

    def stop_draft(self, user):
        return self._run(self.tg.user_stop_draft(self._id(user)))

    def bot_status(self, user, status, chat=None):
        cid, uid = self._where(user, chat)
        return self._run(self.tg.set_bot_status(cid, uid, status))

    def join(self, user, chat, joins=True):
        return self._run(self.tg.user_join(self._id(chat), self._id(user), joins))

    def topic(self, user, chat, name):
        return self._run(self.tg.topic(self._id(chat), self._id(user), name))

    def raw(self, kind, payload):
        return self._run(self.tg.push_raw(kind, payload))

    def migrate(self, group, by):
        self.names[group] = self._run(self.tg.migrate(self._id(group), self._id(by)))
        return self.names[group]

    def guest(self, user, text):
        return self._run(self.tg.guest_ask(self._id(user), text))

    def fault(self, method="*", **kw):
        self.tg.fault(method, **kw)

    # ---- expectations --------------------------------------------------------------------------------------------
    def expect(self, chat=None, text=None, kind=("send", "edit"), timeout=45, buttons=None, no_buttons=None, has=None, reply_to=None, where=None, alert=None):
        """Wait for the next event of the chat that fits, skipping others; later calls look only after it.
        kind: send edit delete answer action draft reaction guest error leave. text: a regex. buttons: regexes that must
        each match a label. has: a field of the message ("document", "location"...). where: a function of the event.
        alert: whether an answer to a tap pops up (show_alert)."""
        kinds, cid = (kind,) if isinstance(kind, str) else kind, self._id(chat) if chat is not None else None
        near = []

        def find():
            del near[:]
            for e in list(self.tg.events[self.cursor.get(cid, 0):]):
                if e["kind"] not in kinds or (cid is not None and e["chat_id"] != cid):
                    continue
                m, heard = e.get("message") or {}, said(e)
                labels = [b["text"] if isinstance(b, dict) else b for row in ((e.get("markup") or {}).get("inline_keyboard")
                          or (e.get("markup") or {}).get("keyboard") or []) for b in row]
                near.append(f"{e['kind']}: {heard!r} {labels or ''}")
                if ((text is None or re.search(text, heard, re.S)) and all(any(re.search(b, x) for x in labels) for b in buttons or [])
                        and not any(re.search(b, x) for b in no_buttons or [] for x in labels) and (has is None or has in m)
                        and (reply_to is None or m.get("reply_to_message", {}).get("message_id") == reply_to) and (alert is None or e.get("alert") == alert)
                        and (where is None or where(e))):
                    return e
            return None
        try:
            e = self._wait(find, timeout, f"{'/'.join(kinds)} in {chat!r} matching {text!r} buttons={buttons} has={has}")
        except Failed as err:
            raise Failed(f"{err}\n--- what came instead: {near}") from None
        self.cursor[cid] = e["n"] + 1
        return e

    def expect_none(self, chat, within=1.0, text=None, kind=("send", "edit")):
        n, kinds = self.cursor.get(self._id(chat), 0), (kind,) if isinstance(kind, str) else kind
        time.sleep(within)
        bad = [(e["kind"], said(e)) for e in self.tg.events[n:] if e["chat_id"] == self._id(chat) and e["kind"] in kinds
               and (text is None or re.search(text, said(e), re.S))]
        if bad:
            raise Failed(f"expected silence in {chat!r}, got {bad}")

    def texts(self, chat):
        """What stands in the chat from the bot: the present text of each of its messages, oldest first. Deleted ones are gone."""
        ms, me = self.tg.chats[self._id(chat)]["messages"], self.tg.me["id"]
        return [ms[i].get("text") or ms[i].get("caption") or "" for i in sorted(ms) if ms[i]["from"]["id"] == me]

    def drain(self):
        """Forget what happened so far: later expectations look only at what comes next."""
        for c in [None, *self.names.values()]:
            self.cursor[c] = len(self.tg.events)

    def download(self, event_or_message, kind=None):
        m = event_or_message.get("message", event_or_message)
        kind = kind or next(k for k in ("document", "photo", "voice", "audio", "video", "animation", "sticker") if k in m)
        o = m[kind][-1] if kind == "photo" else m[kind]
        return self.tg.files[o["file_id"]]["data"]

    def calls(self, method=None):
        return [c for c in self.tg.calls if method is None or c["method"].lower() == method.lower()]

    def transcript(self, n=40):
        rows = []
        for e in self.tg.events[-4 * n:]:
            if e["kind"] != "poll":
                m = e.get("message") or {}
                rows.append(f"{e['kind']:8} chat={e['chat_id']} {(m.get('text') or m.get('caption') or e.get('text') or e.get('action') or '')!r:.160}")
        return "\n".join(["--- what the bot did"] + rows[-n:])

    def assert_patient(self, slack=0.05):
        """Nothing was sent to a chat before the end of a retry_after it was given."""
        early = [f"{c['method']} to {c['params'].get('chat_id')} {c['early']:.1f} s early" for c in self.tg.calls if c.get("early", 0) > slack]
        if early:
            raise Failed(f"sent before retry_after was over: {early}")

    def assert_clean(self, allow=()):
        """No error answers (but those matching `allow`), no unemulated methods, every callback query answered but forged ones (`tap`)."""
        errors = [f"{c['method']}: {c['error']}" for c in self.tg.calls if "error" in c and not any(re.search(a, c["error"]) for a in allow)]
        lost = [q["data"] for k, q in self.tg.callbacks.items() if not k.startswith("guest:") and not q["answered"] and not q.get("forged")]
        if errors or lost:
            raise Failed(f"error answers: {errors}; callback queries never answered: {lost}")


# ---- scenarios as data -----------------------------------------------------------------------------------------------
def run_scenario(path):
    text = Path(path).read_text()
    try:
        import yaml
        spec = yaml.safe_load(text)
    except ImportError:
        spec = json.loads(text)
    bot = spec["bot"]
    log = bot.get("log", Path(tempfile.gettempdir()) / f"{Path(path).stem}.bot.log")
    h = Harness(bot["cmd"], env=bot.get("env"), env_map=bot.get("env_map"), cwd=bot.get("cwd"), log=log, **spec.get("fake", {}))
    steps = {"say", "location", "move", "album", "file", "edit", "press", "tap", "react", "stop_draft", "bot_status", "join", "topic", "raw", "migrate", "guest", "fault",
             "expect", "expect_none", "drain", "start_bot", "stop_bot", "assert_clean", "assert_patient"}
    with h:
        for name, extra in (spec.get("users") or {}).items():
            h.user(name, **(extra or {}))
        for name, extra in (spec.get("groups") or {}).items():
            h.group(name, **extra)
        if bot.get("autostart", True):
            h.start_bot()
        for i, step in enumerate(spec["steps"], 1):
            (name, args), = step.items() if isinstance(step, dict) else [(step, {})]
            try:
                if name == "sleep":
                    time.sleep(args)
                elif name in steps:
                    getattr(h, name)(**(args or {}))
                else:
                    raise Failed(f"no such step: {name}")
            except Exception as e:
                print(f"FAILED  step {i} {name} {args}\n{type(e).__name__}: {e}")
                return 1
            print(f"ok      step {i} {name} {args or ''}")
    return 0


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("scenario")
    sys.exit(run_scenario(ap.parse_args().scenario))

"""A faithful in-memory Telegram Bot API server on loopback, for end-to-end tests of one bot. See README.md."""
import asyncio
import copy
import itertools
import json
import random
import re
import time

from aiohttp import ClientError, ClientSession, ClientTimeout, web

from tests.support.entities import ParseError, auto_entities, parse

TOKEN = "7000000001:TEST-token_for_the_fake_bot_api_00000"
DEFAULT_OFF = {"chat_member", "message_reaction", "message_reaction_count"}      # not sent unless asked for
FILE_KINDS = {"sendDocument": "document", "sendPhoto": "photo", "sendVoice": "voice", "sendAudio": "audio",
              "sendVideo": "video", "sendAnimation": "animation", "sendVideoNote": "video_note", "sendSticker": "sticker"}
MIME = {"photo": "image/jpeg", "voice": "audio/ogg", "audio": "audio/mpeg", "video": "video/mp4", "animation": "video/mp4"}
ACTIONS = {"typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice", "upload_document",
           "choose_sticker", "find_location", "record_video_note", "upload_video_note"}
BUTTON_KINDS = {"url", "callback_data", "web_app", "login_url", "switch_inline_query", "switch_inline_query_current_chat",
                "switch_inline_query_chosen_chat", "copy_text", "callback_game", "pay"}
JUST_TRUE = {"setMyName", "setMyDescription", "setMyShortDescription", "setChatMenuButton", "pinChatMessage",
             "unpinChatMessage", "unpinAllChatMessages", "answerInlineQuery", "logOut", "close", "setMyDefaultAdministratorRights"}
REACTIONS = set("👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 "
                "😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡".split())          # a bot may use no others
DELETE_FOR_S = 48 * 3600                                                         # how long a bot may delete a message
NOT_MODIFIED = ("message is not modified: specified new message content and reply markup are exactly the same as a "
                "current content and reply markup of the message")


class ApiError(Exception):
    def __init__(self, code, text, **parameters):
        prefix = {400: "Bad Request: ", 403: "Forbidden: ", 409: "Conflict: ", 429: "Too Many Requests: "}.get(code, "")
        self.code, self.text, self.parameters = code, prefix + text, parameters


class FakeTelegram:
    """The server and the world behind it. Bot-side methods are `m_<name>`; `user_*` and friends play the people."""

    def __init__(self, token=TOKEN, username="fake_test_bot", privacy=True, guest=True, callback_ttl=15.0):
        self.token, self.callback_ttl = token, callback_ttl
        self.me = {"id": int(token.split(":")[0]), "is_bot": True, "first_name": "Test Bot", "username": username}
        self.me_full = {**self.me, "can_join_groups": True, "can_read_all_group_messages": not privacy,
                        "supports_inline_queries": False, "supports_guest_queries": guest, "can_connect_to_business": False,
                        "has_main_web_app": False, "has_topics_enabled": False, "allows_users_to_create_topics": False,
                        "can_manage_bots": False, "supports_join_request_queries": False}
        self.users, self.chats, self.files, self.callbacks, self.guests = {}, {}, {}, {}, {}
        self.made_up = set()                             # ids of updates that tests wrote
        self.updates, self.next_update, self.allowed = [], random.randint(10**8, 9 * 10**8), None
        self.commands, self.faults, self.calls, self.events = {}, [], [], []
        self.poll, self.polls_seen, self.ids = None, 0, itertools.count(random.randint(10**6, 10**7))
        self.changed = asyncio.Condition()
        self.methods = {n[2:].lower(): getattr(self, n) for n in dir(self) if n.startswith("m_")}
        self.flood, self.sent_at = None, {}              # flood = (messages, seconds) a chat, None = no limit
        self.limits, self.wait_until = {}, {}            # chat id, "private", "group" or "all" -> (messages, seconds), edits count too
        self.webhook, self.webhook_task, self.webhooks_set, self.arrived = None, None, 0, asyncio.Event()

    # ---- running -------------------------------------------------------------------------------------------------
    async def start(self, port=0):
        app = web.Application(client_max_size=60 * 2**20)
        app.router.add_route("*", "/bot{token}/{method}", self._http)
        app.router.add_get("/file/bot{token}/{path:.+}", self._download)
        self.runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", port)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.base_url, self.base_file_url = self.url + "/bot", self.url + "/file/bot"
        return self

    async def stop(self):
        if self.poll and not self.poll.done():
            self.poll.set_result("stop")
        await self._drop_webhook()
        await self.runner.cleanup()

    async def _event(self, kind, chat_id=None, **data):
        self.events.append({"n": len(self.events), "t": time.time(), "kind": kind, "chat_id": chat_id, **copy.deepcopy(data)})
        async with self.changed:
            self.changed.notify_all()

    async def _http(self, request):
        method, token = request.match_info["method"], request.match_info["token"]
        p = dict(request.query)
        if request.content_type == "application/json" and request.can_read_body:
            try:
                body = await request.json()
            except ValueError:
                body = None
            if not isinstance(body, dict):
                return web.json_response({"ok": False, "error_code": 400, "description": "Bad Request: can't parse JSON object"}, status=400)
            p |= body
        elif request.can_read_body:
            for k, v in (await request.post()).items():
                p[k] = {"name": v.filename, "data": v.file.read(), "mime": v.content_type} if isinstance(v, web.FileField) else v
        call = {"method": method, "params": p, "t": time.time()}
        self.calls.append(call)
        try:
            if not re.fullmatch(r"\d+:[\w-]+", token):
                raise ApiError(404, "Not Found")
            if token != self.token:
                raise ApiError(401, "Unauthorized")
            await self._fault(method, p)
            call["early"] = self._early(method, p)
            result = await self._answer(method, p, call)
            call["result"], body, code = copy.deepcopy(result), {"ok": True, "result": result}, 200
        except ApiError as e:
            body, code = {"ok": False, "error_code": e.code, "description": e.text}, e.code
            if e.parameters:
                body["parameters"] = e.parameters
            if wait := e.parameters.get("retry_after"):
                self.wait_until[self._int(p.get("chat_id"))] = time.time() + wait
            call["error"] = e.text
            await self._event("error", self._int(p.get("chat_id")), method=method, code=e.code, text=e.text)
        if code == -1:                                   # a fault that drops the connection
            request.transport.close()
            code = 500
        return web.json_response(body, status=code)

    async def _answer(self, method, p, call):
        """Carry out a method: a handler of its own, a file, or a plain yes."""
        if handler := self.methods.get(method.lower()):
            return await handler(p)
        if method in FILE_KINDS:
            return await self._send_file(FILE_KINDS[method], p)
        if method in JUST_TRUE:
            return True
        call["unsupported"] = True
        raise ApiError(404, "Not Found: method not found (or not emulated by this fake)")

    def _early(self, method, p):
        """Seconds by which a message comes before the end of a retry_after that its chat was given; 0.0 = in time."""
        until = self.wait_until.get(self._int(p.get("chat_id")), 0)
        return max(0.0, until - time.time()) if re.match("(?i)send(?!ChatAction)|edit|forward|copy", method) else 0.0

    async def _download(self, request):
        f = next((f for f in self.files.values() if f["file_path"] == request.match_info["path"]), None)
        if request.match_info["token"] != self.token or f is None:
            return web.json_response({"ok": False, "error_code": 404, "description": "Not Found"}, status=404)
        return web.Response(body=f["data"], content_type="application/octet-stream")

    def fault(self, method="*", code=429, text=None, times=1, delay=0.0, chat_id=None, after=False, **parameters):
        """Make the next `times` calls fail. code: an HTTP status, -1 = drop the connection, 0 = only delay.
        after=True: the call takes effect first, then the answer is lost (the case of a repeated message)."""
        if code == 429:
            parameters.setdefault("retry_after", 1)
            text = text or f"retry after {parameters['retry_after']}"
        text = text or {400: "chat not found", 403: "bot was blocked by the user", 401: "Unauthorized"}.get(code, "Internal Server Error")
        self.faults.append({"method": method, "code": code, "text": text, "left": times, "delay": delay,
                            "chat_id": chat_id, "after": after, "parameters": parameters})

    async def _fault(self, method, p):
        for f in self.faults:
            if (f["left"] > 0 and f["method"].lower() in ("*", method.lower()) and (f["method"] != "*" or method != "getUpdates")
                    and f["chat_id"] in (None, self._int(p.get("chat_id")))):
                f["left"] -= 1
                if f["delay"]:
                    await asyncio.sleep(f["delay"])
                if f["after"]:
                    await self._answer(method, p, {})
                if f["code"]:
                    raise ApiError(f["code"], f["text"], **f["parameters"])
                return

    # ---- parameters ----------------------------------------------------------------------------------------------
    @staticmethod
    def _int(v, default=None):
        try:
            return int(v)
        except (TypeError, ValueError):
            return default

    @staticmethod
    def _bool(v):
        return v if isinstance(v, bool) else str(v).lower() in ("1", "true", "yes")

    @staticmethod
    def _obj(v, what):
        if v in (None, ""):
            return None
        if isinstance(v, str):
            try:
                v = json.loads(v)
            except ValueError:
                raise ApiError(400, f"can't parse {what}: Expected a JSON object") from None
        return v

    def _chat(self, p, write=True):
        raw = p.get("chat_id")
        if raw in (None, ""):
            raise ApiError(400, "chat_id is empty")
        cid = self._int(raw)
        if cid is None:
            cid = next((c["id"] for c in self.chats.values() if "@" + c["info"].get("username", "") == raw), None)
        chat = self.chats.get(cid)
        if chat is None:
            raise ApiError(400, "chat not found")
        if chat.get("migrated_to") and write:
            raise ApiError(400, "group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat["migrated_to"])
        if write and chat.get("blocked"):
            raise ApiError(403, "bot was blocked by the user")
        if write and chat["type"] == "private" and not chat["started"]:
            raise ApiError(403, "bot can't initiate conversation with a user")
        if chat["type"] != "private" and not chat["bot_in"]:
            how = "is not a member of" if chat["members"].get(self.me["id"], "left") == "left" else "was kicked from"
            raise ApiError(403, f"bot {how} the {chat['type']} chat")
        return chat

    def _text(self, p, key="text", entities="entities", limit=4096, required=True):
        """(plain, entities) of a text or caption, or the error Telegram would give."""
        raw = p.get(key) or ""
        given = self._obj(p.get(entities), "entities")
        try:
            plain, ents = parse(raw, None if given else p.get("parse_mode"))
        except ParseError as e:
            raise ApiError(400, str(e) if str(e) == "unsupported parse_mode" else f"can't parse entities: {e}") from None
        plain = plain.strip()
        if required and not plain:
            raise ApiError(400, "message text is empty")
        if len(plain) > limit:
            raise ApiError(400, "message is too long" if key == "text" else "message caption is too long")
        return plain, auto_entities(plain, given or ents)

    def _markup(self, p, chat):
        m = self._obj(p.get("reply_markup"), "reply keyboard markup JSON object")
        if not m:
            return None
        if "inline_keyboard" in m:
            buttons = [b for row in m["inline_keyboard"] for b in row]
            if len(buttons) > 100:
                raise ApiError(400, "reply markup is too long")
            for b in buttons:
                if not b.get("text"):
                    raise ApiError(400, "can't parse inline keyboard button: Field \"text\" must be a non-empty String")
                if not BUTTON_KINDS & b.keys():
                    raise ApiError(400, "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
                if "callback_data" in b and not 1 <= len(b["callback_data"].encode()) <= 64:
                    raise ApiError(400, "BUTTON_DATA_INVALID")
                if "url" in b and not re.match(r"(https?|tg|ton)://[^\s.]+(\.|:|$|\?)|mailto:|tel:", b["url"]):
                    raise ApiError(400, f"inline keyboard button URL '{b['url']}' is invalid: Wrong HTTP URL")
                if "web_app" in b and chat["type"] != "private":
                    raise ApiError(400, "BUTTON_TYPE_INVALID")
        if len(m.get("input_field_placeholder") or "") > 64:
            raise ApiError(400, "BUTTON_PLACEHOLDER_INVALID")
        for b in [b for row in m.get("keyboard", []) for b in row if isinstance(b, dict)]:
            for key, what in (("request_location", "location"), ("request_contact", "phone number")):
                if b.get(key) and chat["type"] != "private":
                    raise ApiError(400, f"{what} can be requested in private chats only")
        return m

    # ---- messages ------------------------------------------------------------------------------------------------
    def _new(self, chat, sender, thread=None, reply=None, **content):
        chat["last_id"] += 1
        m = {"message_id": chat["last_id"], "from": sender, "chat": chat["info"], "date": int(time.time())}
        if thread:
            m |= {"message_thread_id": thread, "is_topic_message": True}
        if reply:
            m["reply_to_message"] = {k: v for k, v in reply.items() if k != "reply_to_message"}
        m |= {k: v for k, v in content.items() if v not in (None, [])}
        chat["messages"][m["message_id"]] = m
        return m

    def _target(self, p, chat):
        """(thread, replied message) the bot asked for."""
        thread = self._int(p.get("message_thread_id"))
        if thread and thread not in chat["topics"]:
            raise ApiError(400, "message thread not found")
        rp = self._obj(p.get("reply_parameters"), "ReplyParameters") or {}
        rid = self._int(rp.get("message_id") or p.get("reply_to_message_id"))
        reply = chat["messages"].get(rid)
        if rid and reply is None and not self._bool(rp.get("allow_sending_without_reply") or p.get("allow_sending_without_reply")):
            raise ApiError(400, "message to be replied not found")
        return thread, reply

    def _limit(self, chat, edit=False):
        """429 where the chat has had its messages; `flood` counts new ones, `limits` edits as well."""
        kind = "private" if chat["type"] == "private" else "group"
        rules = {chat["id"]: self.flood} if self.flood and not edit else {}
        rules |= {k: v for k, v in self.limits.items() if k == chat["id"] or (k == kind and chat["id"] not in self.limits) or k == "all"}
        counted = []
        for key, (limit, period) in rules.items():
            where = key if key == "all" else chat["id"]
            recent = self.sent_at[where] = [t for t in self.sent_at.get(where, []) if t > time.time() - period]
            if len(recent) >= limit:
                wait = int(recent[0] + period - time.time()) + 1
                raise ApiError(429, f"retry after {wait}", retry_after=wait)
            counted.append(where)
        for where in counted:
            self.sent_at[where].append(time.time())

    async def _send(self, p, chat, **content):
        self._limit(chat)
        thread, reply = self._target(p, chat)
        markup = self._markup(p, chat)
        inline = markup if markup and "inline_keyboard" in markup else None      # only inline keyboards come back
        protected = True if self._bool(p.get("protect_content")) else None
        preview = self._obj(p.get("link_preview_options"), "LinkPreviewOptions")
        m = self._new(chat, self.me, thread, reply, reply_markup=inline, has_protected_content=protected, link_preview_options=preview, **content)
        if markup and "keyboard" in markup:
            chat["keyboard"] = markup
        elif markup and markup.get("remove_keyboard"):
            chat["keyboard"] = None
        elif markup and markup.get("force_reply"):
            chat["force_reply"] = {"to": m["message_id"], "only": self._addressed(chat, m) if self._bool(markup.get("selective")) else None, "done": set()}
        links = any(e["type"] in ("url", "text_link") for e in m.get("entities", []))
        await self._event("send", chat["id"], message=m, markup=markup, parse_mode=p.get("parse_mode"), silent=self._bool(p.get("disable_notification")),
                          preview=links and not self._bool((preview or {}).get("is_disabled")) and not self._bool(p.get("disable_web_page_preview")))
        return m

    def _addressed(self, chat, m):
        """Whom a selective keyboard of the bot's message is for: those it mentions, and the author of what it answers."""
        names = {n.lower() for n in re.findall(r"@(\w+)", m.get("text", ""))}
        return {u for u, user in self.users.items() if user.get("username", "").lower() in names} | {m.get("reply_to_message", {}).get("from", {}).get("id")}

    async def m_sendMessage(self, p):
        chat = self._chat(p)
        text, ents = self._text(p)
        return await self._send(p, chat, text=text, entities=ents)

    def _own(self, p, what):
        """The bot's message that an edit names."""
        if p.get("inline_message_id"):
            m = self.guests.get(p["inline_message_id"])
            if m is None:
                raise ApiError(400, "MESSAGE_ID_INVALID")
            return None, m
        chat = self._chat(p)
        m = chat["messages"].get(self._int(p.get("message_id")))
        if m is None:
            raise ApiError(400, f"message to {what} not found")
        if m["from"]["id"] != self.me["id"] and what == "edit":
            raise ApiError(400, "message can't be edited")
        return chat, m

    async def _edit(self, p, key):
        chat, m = self._own(p, "edit")
        if chat:
            self._limit(chat, edit=True)
        new = copy.deepcopy(m)
        if key:
            if (key == "text") != ("text" in m):
                raise ApiError(400, f"there is no {'text' if key == 'text' else 'caption'} in the message to edit")
            ents_key = "entities" if key == "text" else "caption_entities"
            new[key], new[ents_key] = self._text(p, key, ents_key, 4096 if key == "text" else 1024, key == "text")
        markup = self._markup(p, chat or {"type": "private"})
        new["reply_markup"] = markup if markup and markup.get("inline_keyboard") else None
        new = {k: v for k, v in new.items() if v not in (None, [])}
        if {**new, "edit_date": 0} == {**m, "edit_date": 0}:
            raise ApiError(400, NOT_MODIFIED)
        new["edit_date"] = int(time.time())
        m.clear()
        m.update(new)
        await self._event("edit", chat["id"] if chat else None, message=m, markup=markup, parse_mode=p.get("parse_mode"))
        return m if chat else True

    async def m_editMessageText(self, p):
        return await self._edit(p, "text")

    async def m_editMessageCaption(self, p):
        return await self._edit(p, "caption")

    async def m_editMessageReplyMarkup(self, p):
        return await self._edit(p, None)

    async def m_deleteMessage(self, p):
        chat, m = self._own(p, "delete")
        if not self._deletable(chat, m):
            raise ApiError(400, "message can't be deleted")
        del chat["messages"][m["message_id"]]
        await self._event("delete", chat["id"], message=m)
        return True

    def _deletable(self, chat, m):
        """A bot deletes its own messages and, in private chats or as an administrator, other people's; an administrator at any age."""
        admin = chat["members"].get(self.me["id"]) == "administrator"
        mine = m["from"]["id"] == self.me["id"]
        return admin or ((mine or chat["type"] == "private") and time.time() - m["date"] < DELETE_FOR_S)

    async def m_deleteMessages(self, p):
        chat, ids = self._chat(p), self._obj(p.get("message_ids"), "message identifiers") or []
        if not 1 <= len(ids) <= 100:
            raise ApiError(400, "there are no or too many message identifiers")
        for m in [chat["messages"].get(self._int(i)) for i in ids]:
            if m and self._deletable(chat, m):            # those that cannot be deleted are skipped
                del chat["messages"][m["message_id"]]
                await self._event("delete", chat["id"], message=m)
        return True

    def _file(self, data, name, mime, kind, size=None):
        n, ext = next(self.ids), re.search(r"(\.\w+)?$", name or "").group()
        f = {"file_id": f"FAKE{kind}{n}", "file_unique_id": f"u{n}", "file_size": size or len(data), "data": data, "kind": kind, "mime": mime,
             "name": name, "file_path": f"{kind}s/file_{n}{ext}"}
        self.files[f["file_id"]] = f
        return f

    def _media(self, kind, f):
        """The Bot API object for a stored file."""
        o = {k: f[k] for k in ("file_id", "file_unique_id", "file_size")}
        if kind == "photo":
            return [{**o, "width": 90, "height": 90}, {**o, "width": 800, "height": 800}]
        if kind in ("voice", "audio", "video", "animation", "video_note"):
            o["duration"] = 1
        o |= {"video": {"width": 640, "height": 360}, "animation": {"width": 640, "height": 360}, "video_note": {"length": 240},
              "sticker": {"type": "regular", "width": 512, "height": 512, "is_animated": False, "is_video": False}}.get(kind, {})
        if kind in ("document", "audio", "video", "animation"):
            o["file_name"] = f["name"]
        return o | ({"mime_type": f["mime"]} if kind not in ("sticker", "video_note") else {})

    def _input_file(self, p, value, kind):
        if isinstance(value, str) and value.startswith("attach://"):
            value = p.get(value[9:])
        if isinstance(value, dict):
            if not value["data"]:
                raise ApiError(400, "file must be non-empty")
            if len(value["data"]) > (10 if kind == "photo" else 50) * 2**20:
                raise ApiError(413, "Request Entity Too Large")
            if kind == "photo" and not re.match(rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF|BM", value["data"]):
                raise ApiError(400, "IMAGE_PROCESS_FAILED")
            return self._file(value["data"], value["name"], MIME.get(kind, value["mime"]), kind)
        if value in self.files:
            return self.files[value]
        raise ApiError(400, f"there is no {kind} in the request" if not value else "wrong file identifier/HTTP URL specified")

    async def _send_file(self, kind, p):
        chat = self._chat(p)
        f = self._input_file(p, p.get(kind), kind)
        caption, ents = self._text(p, "caption", "caption_entities", 1024, False)
        return await self._send(p, chat, **{kind: self._media(kind, f)}, caption=caption or None, caption_entities=ents)

    async def m_sendMediaGroup(self, p):
        chat, items, group, out = self._chat(p), self._obj(p.get("media"), "media") or [], str(next(self.ids)), []
        if not 2 <= len(items) <= 10:
            raise ApiError(400, "group send failed: an album needs 2-10 items")
        kinds = {it.get("type") for it in items}
        if kinds - {"photo", "video", "document", "audio"} or (len(kinds) > 1 and kinds & {"document", "audio"}):
            raise ApiError(400, "group send failed: these kinds cannot be sent together")
        for it in items:
            caption, ents = self._text(it, "caption", "caption_entities", 1024, False)
            f = self._input_file(p, it.get("media"), it["type"])
            out.append(await self._send({k: v for k, v in p.items() if k != "reply_markup"}, chat, media_group_id=group,
                                        **{it["type"]: self._media(it["type"], f)}, caption=caption or None, caption_entities=ents))
        return out

    async def m_getFile(self, p):
        f = self.files.get(p.get("file_id"))
        if f is None:
            raise ApiError(400, "wrong file_id or the file is temporarily unavailable")
        if f["file_size"] > 20 * 2**20:
            raise ApiError(400, "file is too big")
        return {k: f[k] for k in ("file_id", "file_unique_id", "file_size", "file_path")}

    async def m_sendLocation(self, p):
        return await self._send(p, self._chat(p), location={"latitude": float(p["latitude"]), "longitude": float(p["longitude"])})

    async def m_sendVenue(self, p):
        loc = {"latitude": float(p["latitude"]), "longitude": float(p["longitude"])}
        return await self._send(p, self._chat(p), location=loc, venue={"location": loc, "title": p["title"], "address": p["address"]})

    async def m_sendPoll(self, p):
        opts = [{"text": o if isinstance(o, str) else o["text"], "voter_count": 0, "persistent_id": str(i)} for i, o in enumerate(self._obj(p.get("options"), "options"))]
        return await self._send(p, self._chat(p), poll={"id": str(next(self.ids)), "question": p["question"], "options": opts, "total_voter_count": 0,
                                "is_closed": False, "is_anonymous": True, "type": "regular", "allows_multiple_answers": False, "allows_revoting": True, "members_only": False})

    async def m_forwardMessage(self, p):
        chat, src = self._chat(p), self._chat({"chat_id": p.get("from_chat_id")}, write=False)
        m = src["messages"].get(self._int(p.get("message_id")))
        if m is None:
            raise ApiError(400, "message to forward not found")
        if m.get("has_protected_content"):
            raise ApiError(400, "message can't be forwarded")
        origin = m.get("forward_origin") or {"type": "user", "sender_user": m["from"], "date": m["date"]}
        return await self._send(p, chat, **self._content(m), forward_origin=origin)

    @staticmethod
    def _content(m):
        """What of a message goes along when it is forwarded or copied."""
        own = ("message_id", "from", "chat", "date", "reply_markup", "reply_to_message", "edit_date", "message_thread_id", "is_topic_message", "forward_origin", "link_preview_options")
        return {k: v for k, v in m.items() if k not in own}

    async def m_copyMessage(self, p):
        chat, src = self._chat(p), self._chat({"chat_id": p.get("from_chat_id")}, write=False)
        m = src["messages"].get(self._int(p.get("message_id")))
        if m is None:
            raise ApiError(400, "message to copy not found")
        if m.get("has_protected_content"):
            raise ApiError(400, "message can't be copied")
        return {"message_id": (await self._send(p, chat, **self._content(m)))["message_id"]}

    async def m_sendMessageDraft(self, p):
        chat = self._chat(p)
        if chat["type"] != "private":
            raise ApiError(400, "method is available only for private chats")
        if not self._int(p.get("draft_id")):
            raise ApiError(400, "RANDOM_ID_INVALID")
        text, _ = self._text(p, required=False)
        await self._event("draft", chat["id"], draft_id=self._int(p["draft_id"]), text=text, can_stop=self._bool(p.get("can_stop")))
        return True

    async def m_sendChatAction(self, p):
        chat = self._chat(p)
        if p.get("action") not in ACTIONS:
            raise ApiError(400, "wrong parameter action in request")
        await self._event("action", chat["id"], action=p["action"])
        return True

    async def m_setMessageReaction(self, p):
        chat = self._chat(p)
        m = chat["messages"].get(self._int(p.get("message_id")))
        if m is None:
            raise ApiError(400, "message to react not found")
        reaction = self._obj(p.get("reaction"), "reaction") or []
        if len(reaction) > 1:
            raise ApiError(400, "REACTIONS_TOO_MANY")
        if any(r.get("type") == "emoji" and r.get("emoji", "").replace("\ufe0f", "") not in REACTIONS for r in reaction):
            raise ApiError(400, "REACTION_INVALID")
        chat["reactions"][m["message_id"]] = reaction
        await self._event("reaction", chat["id"], message_id=m["message_id"], emoji=[r.get("emoji") for r in reaction])
        return True

    async def m_answerCallbackQuery(self, p):
        q = self.callbacks.get(p.get("callback_query_id"))
        if q is None or q["answered"] or time.time() - q["t"] > self.callback_ttl:
            raise ApiError(400, "query is too old and response timeout expired or query ID is invalid")
        if len(p.get("text") or "") > 200:
            raise ApiError(400, "MESSAGE_TOO_LONG")
        q["answered"] = True
        await self._event("answer", q["chat_id"], text=p.get("text"), alert=self._bool(p.get("show_alert")), data=q["data"])
        return True

    async def m_answerGuestQuery(self, p):
        q = self.callbacks.pop("guest:" + str(p.get("guest_query_id")), None)
        if q is None:
            raise ApiError(400, "query is too old and response timeout expired or query ID is invalid")
        content = (self._obj(p.get("result"), "result") or {}).get("input_message_content") or {}
        text, ents = self._text({"text": content.get("message_text"), "parse_mode": content.get("parse_mode"), "entities": content.get("entities")})
        iid = f"guest{next(self.ids)}"
        self.guests[iid] = {"message_id": 0, "from": self.me, "text": text, **({"entities": ents} if ents else {})}
        await self._event("guest", q["chat_id"], message=self.guests[iid], inline_message_id=iid)
        return {"inline_message_id": iid}

    # ---- the bot and its chats -----------------------------------------------------------------------------------
    async def m_getMe(self, p):
        return self.me_full

    async def m_setMyCommands(self, p):
        cmds = self._obj(p.get("commands"), "commands") or []
        if len(cmds) > 100:
            raise ApiError(400, "BOT_COMMANDS_TOO_MUCH")
        for c in cmds:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", c.get("command", "").lstrip("/")):
                raise ApiError(400, "BOT_COMMAND_INVALID")
            if not 1 <= len(c.get("description", "")) <= 256:
                raise ApiError(400, "BOT_COMMAND_DESCRIPTION_INVALID")
        self.commands[self._scope(p)] = cmds
        return True

    def _scope(self, p):
        return json.dumps([self._obj(p.get("scope"), "BotCommandScope") or {"type": "default"}, p.get("language_code") or ""], sort_keys=True)

    async def m_getMyCommands(self, p):
        return self.commands.get(self._scope(p), [])

    def commands_for(self, chat_id, uid, lang=""):
        """The command list a person's client shows: the narrowest scope that has one, first in the person's language."""
        chat = self.chats[chat_id]
        private, admin = chat["type"] == "private", chat["members"].get(uid) in ("administrator", "creator")
        scopes = [{"type": "chat", "chat_id": chat_id}] + ([{"type": "all_private_chats"}] if private else [])
        if not private:
            scopes = ([{"type": "chat_member", "chat_id": chat_id, "user_id": uid}] + ([{"type": "chat_administrators", "chat_id": chat_id}] if admin else []) + scopes
                      + ([{"type": "all_chat_administrators"}] if admin else []) + [{"type": "all_group_chats"}])
        for scope in [*scopes, {"type": "default"}]:
            for code in (lang, "") if lang else ("",):
                if found := self.commands.get(self._scope({"scope": scope, "language_code": code})):
                    return found
        return []

    async def m_deleteMyCommands(self, p):
        self.commands.pop(self._scope(p), None)
        return True

    async def m_getChat(self, p):
        chat = self._chat(p, write=False)
        return {**chat["info"], "accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": {
            k: True for k in ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels")}}

    def _member(self, chat, uid):
        user = self.me if uid == self.me["id"] else self.users.get(uid)
        if user is None:
            raise ApiError(400, "member not found")
        status = chat["members"].get(uid, "left")
        rights = {k: True for k in ("can_be_edited", "can_manage_chat", "can_delete_messages", "can_manage_video_chats", "can_restrict_members", "can_promote_members",
                  "can_change_info", "can_invite_users", "can_post_stories", "can_edit_stories", "can_delete_stories", "can_send_welcome_messages")} if status == "administrator" else {}
        return {"status": status, "user": user, **({"is_anonymous": False} if status in ("creator", "administrator") else {}), **rights}

    async def m_getChatMember(self, p):
        return self._member(self._chat(p, write=False), self._int(p.get("user_id")))

    async def m_getChatAdministrators(self, p):
        chat = self._chat(p, write=False)
        return [self._member(chat, u) for u, s in chat["members"].items() if s in ("creator", "administrator") and u != self.me["id"]]

    async def m_getChatMemberCount(self, p):
        return len(self._chat(p, write=False)["members"])

    async def m_leaveChat(self, p):
        chat = self._chat(p)
        chat["bot_in"], chat["members"][self.me["id"]] = False, "left"
        await self._event("leave", chat["id"])
        return True

    async def m_createForumTopic(self, p):
        chat = self._chat(p)
        if not chat["info"].get("is_forum"):
            raise ApiError(400, "the chat is not a forum")
        topic = {"name": p["name"], "icon_color": 7322096}
        m = self._new(chat, self.me, forum_topic_created=topic)
        m |= {"message_thread_id": m["message_id"], "is_topic_message": True}
        chat["topics"][m["message_id"]] = p["name"]
        return {"message_thread_id": m["message_id"], **topic}

    # ---- updates -------------------------------------------------------------------------------------------------
    async def m_getUpdates(self, p):
        if self.webhook:
            raise ApiError(409, "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
        if self.poll and not self.poll.done():           # the waiting poller loses, the new one goes on
            self.poll.set_result("conflict")
        allowed = self._obj(p.get("allowed_updates"), "allowed_updates")
        if allowed is not None:
            self.allowed = set(allowed)
        offset, limit = self._int(p.get("offset"), 0), min(max(self._int(p.get("limit"), 100), 1), 100)
        if offset < 0:
            self.updates = self.updates[offset:]
        elif offset > 0:
            self.updates = [u for u in self.updates if u["update_id"] >= offset]
        self.polls_seen += 1
        await self._event("poll", offset=offset)
        if not self.updates and (timeout := min(self._int(p.get("timeout"), 0), 50)) > 0:
            mine = self.poll = asyncio.get_running_loop().create_future()
            try:
                reason = await asyncio.wait_for(mine, timeout)
            except asyncio.TimeoutError:
                reason = None
            finally:
                if self.poll is mine:
                    self.poll = None
            if reason == "webhook":
                raise ApiError(409, "terminated by setWebhook request")
            if reason == "conflict":
                raise ApiError(409, "terminated by other getUpdates request; make sure that only one bot instance is running")
        return self.updates[:limit]

    async def m_deleteWebhook(self, p):
        if self._bool(p.get("drop_pending_updates", False)):
            self.updates.clear()
        await self._drop_webhook()
        return True

    async def _drop_webhook(self):
        task, self.webhook, self.webhook_task = self.webhook_task, None, None
        if task:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def m_setWebhook(self, p):
        url, secret = p.get("url") or "", p.get("secret_token") or ""
        if not url:
            return await self.m_deleteWebhook(p)
        if len(secret) > 256:
            raise ApiError(400, "secret token is too long")
        if not re.fullmatch(r"[A-Za-z0-9_-]*", secret):
            raise ApiError(400, "secret token contains unallowed characters")
        if not re.match(r"https://|http://(127\.0\.0\.1|localhost|\[::1\])[:/]", url):      # plain http is this fake's, for loopback only
            raise ApiError(400, "bad webhook: An HTTPS URL must be provided for webhook")
        await self.m_deleteWebhook(p)
        allowed = self._obj(p.get("allowed_updates"), "allowed_updates")
        if allowed is not None:
            self.allowed = set(allowed)
        if self.poll and not self.poll.done():
            self.poll.set_result("webhook")
        self.webhook = {"url": url, "secret": secret, "max": self._int(p.get("max_connections"), 40)}
        self.webhook_task, self.webhooks_set = asyncio.create_task(self._deliver()), self.webhooks_set + 1
        return True

    async def _deliver(self):
        """Post the waiting updates one by one; what is not taken with a 2xx is tried again, later each time, and holds up the rest."""
        hook, wait = self.webhook, 0.1
        async with ClientSession(timeout=ClientTimeout(total=30)) as http:
            while True:
                while not self.updates:
                    self.arrived.clear()
                    await self.arrived.wait()
                u = self.updates[0]
                status, reply = await self._post(http, hook["url"], u, hook["secret"])
                await self._event("hook", status=status, update_id=u["update_id"])
                if 200 <= status < 300:
                    self.updates, wait = [x for x in self.updates if x["update_id"] != u["update_id"]], 0.1
                    if isinstance(reply, dict) and reply.get("method"):                        # a method call as the answer
                        try:
                            await self._answer(reply["method"], reply, {})
                        except ApiError as e:
                            await self._event("error", self._int(reply.get("chat_id")), method=reply["method"], code=e.code, text=e.text)
                else:
                    hook |= {"error_at": int(time.time()), "error": f"Wrong response from the webhook: {status}" if status else "Connection failed"}
                    await asyncio.sleep(wait)
                    wait = min(wait * 2, 5)

    @staticmethod
    async def _post(http, url, update, secret):
        """(status, JSON answer or None) of one delivery; status 0: no connection."""
        try:
            async with http.post(url, json=update, headers={"X-Telegram-Bot-Api-Secret-Token": secret} if secret else {}) as r:
                body = await r.text()
                try:
                    return r.status, json.loads(body) if body.strip() else None
                except ValueError:
                    return r.status, None
        except (ClientError, OSError, TimeoutError):
            return 0, None

    async def forge(self, update, secret="", url=None):
        """Somebody who is not Telegram posts to the bot's webhook; returns the status the bot answers with."""
        async with ClientSession(timeout=ClientTimeout(total=10)) as http:
            return (await self._post(http, url or self.webhook["url"], update, secret))[0]

    async def m_getWebhookInfo(self, p):
        w = self.webhook or {}
        info = {"url": w.get("url", ""), "has_custom_certificate": False, "pending_update_count": len(self.updates)}
        if w:
            info |= {"max_connections": w["max"], "ip_address": "127.0.0.1", **({"allowed_updates": sorted(self.allowed)} if self.allowed else {})}
        return info | ({"last_error_date": w["error_at"], "last_error_message": w["error"]} if "error" in w else {})

    def _push(self, kind, payload):
        if (kind in DEFAULT_OFF) if not self.allowed else (kind not in self.allowed):
            return None
        u = {"update_id": self.next_update, kind: copy.deepcopy(payload)}
        self.next_update += 1
        self.updates.append(u)
        if self.poll and not self.poll.done():
            self.poll.set_result("update")
        self.arrived.set()
        return u

    def redeliver(self, update):
        """Put an update that was confirmed before back at the front (what a crash before the confirming poll does)."""
        self.made_up.add(update["update_id"])
        self.updates.insert(0, update)

    # ---- people --------------------------------------------------------------------------------------------------
    def add_user(self, uid, first_name="User", started=True, **extra):
        user = self.users[uid] = {"id": uid, "is_bot": False, "first_name": first_name, "language_code": "en", **extra}
        info = {"id": uid, "type": "private", **{k: user[k] for k in ("first_name", "last_name", "username") if k in user}}
        self.chats[uid] = self._chat_state(uid, "private", info, {uid: "member"}, started=started)
        return user

    def add_group(self, gid, title, members, type="supergroup", forum=False, bot=True, admins=()):
        info = {"id": gid, "type": type, "title": title, **({"is_forum": True} if forum else {})}
        roles = {u: "administrator" if u in admins else "member" for u in members} | ({self.me["id"]: "member"} if bot else {})
        self.chats[gid] = self._chat_state(gid, type, info, roles, bot_in=bot)
        return self.chats[gid]

    @staticmethod
    def _chat_state(cid, type, info, members, **more):
        return {"id": cid, "type": type, "info": info, "members": members, "messages": {}, "topics": {}, "keyboard": None, "reactions": {}, "force_reply": None,
                "last_id": random.randint(1, 400), "bot_in": True, "started": True, **more}

    def _hears(self, chat, m):
        """Privacy mode: what a bot without admin rights gets of a group's talk."""
        if chat["type"] == "private" or self.me_full["can_read_all_group_messages"] or chat["members"].get(self.me["id"]) == "administrator":
            return True
        text, name = m.get("text") or m.get("caption") or "", self.me["username"].lower()
        return bool(re.match(rf"/\w+(@{name})?(\s|$)", text.lower()) or f"@{name}" in text.lower()
                    or m.get("reply_to_message", {}).get("from", {}).get("id") == self.me["id"] or not ({"text", "caption"} & m.keys()
                    or FILE_KINDS_SET & m.keys() or "location" in m))

    @staticmethod
    def _forced(chat, uid):
        """The message a client answers by itself: the bot's newest ForceReply, once a person. reply_to=0 declines it."""
        f = chat["force_reply"]
        if f is None or uid in f["done"] or (f["only"] is not None and uid not in f["only"]):
            return None
        f["done"].add(uid)
        return f["to"]

    async def user_send(self, chat_id, uid, text=None, reply_to=None, thread=None, file=None, size=None, as_chat=None, **content):
        """A person's message. file = (kind, name, bytes[, mime]); size: the size it claims; as_chat: sent in that chat's name
        (the group's own: an anonymous administrator; another: a channel). Returns the Message."""
        chat, sender = self.chats[chat_id], self.users[uid]
        if as_chat is not None:
            anonymous = as_chat == chat_id
            sender = {"id": 1087968824 if anonymous else 136817688, "is_bot": True, "first_name": "Group" if anonymous else "Channel",
                      "username": "GroupAnonymousBot" if anonymous else "Channel_Bot"}
            content["sender_chat"] = self.chats[as_chat]["info"]
        if chat["type"] == "private":
            chat["started"] = True
            if chat.get("blocked"):                       # nobody can write to a bot they block: they unblock it first
                await self.set_bot_status(chat_id, uid, "member")
        if reply_to is None:
            reply_to = self._forced(chat, uid)
        if file:
            kind, name, data, *mime = file
            content[kind] = self._media(kind, self._file(data, name, (mime or [MIME.get(kind, "application/octet-stream")])[0], kind, size))
            content |= {"caption": text, "caption_entities": auto_entities(text)} if text else {}
        elif text is not None:
            content |= {"text": text, "entities": auto_entities(text)}
        m = self._new(chat, sender, thread, chat["messages"].get(reply_to), **content)
        if chat["bot_in"] and self._hears(chat, m):
            self._push("message", m)
        return m

    async def user_edit(self, chat_id, message_id, text):
        chat = self.chats[chat_id]
        m = chat["messages"][message_id]
        key, ents = ("text", "entities") if "text" in m else ("caption", "caption_entities")
        m |= {key: text, "edit_date": int(time.time()), ents: auto_entities(text)}
        return self._edited(chat, m)

    def _edited(self, chat, m):
        if chat["bot_in"] and self._hears(chat, m):
            self._push("edited_message", m)
        return m

    async def user_move(self, chat_id, message_id, lat, lon, stop=False):
        """A live location moves (an edited_message); stop=True: sharing ends, and the live period goes."""
        chat = self.chats[chat_id]
        m = chat["messages"][message_id]
        m["location"] = {k: v for k, v in m["location"].items() if not stop or k not in ("live_period", "heading")} | {"latitude": lat, "longitude": lon}
        m["edit_date"] = int(time.time())
        return self._edited(chat, m)

    async def user_tap(self, chat_id, uid, data, message=None):
        """A tap that no client would offer: any data, by anyone, on any message (a replay, a forgery). Returns the query's id."""
        qid = self._query(self.chats[chat_id], uid, message or {"message_id": 1, "chat": self.chats[chat_id]["info"], "date": 0}, data, message is not None)
        self.callbacks[qid]["forged"] = True
        return qid

    def _query(self, chat, uid, m, data, made_up=False):
        qid = str(next(self.ids))
        self.callbacks[qid] = {"t": time.time(), "answered": False, "chat_id": chat["id"], "data": data}
        u = self._push("callback_query", {"id": qid, "from": self.users[uid], "message": m, "chat_instance": str(chat["id"]), "data": data})
        if made_up:
            self._made_up(u)
        return qid

    async def user_press(self, chat_id, uid, label, message_id=None, lat=None, lon=None):
        """Press the newest button whose label matches the regex: inline first, else the reply keyboard."""
        chat = self.chats[chat_id]
        for mid in sorted(chat["messages"], reverse=True) if message_id is None else [message_id]:
            m = chat["messages"][mid]
            for b in [b for row in m.get("reply_markup", {}).get("inline_keyboard", []) for b in row]:
                if re.search(label, b["text"]):
                    if "callback_data" not in b:
                        return b                          # a link or a Mini App: nothing reaches the bot
                    self._query(chat, uid, m, b["callback_data"])
                    return b
        for b in [b for row in (chat["keyboard"] or {}).get("keyboard", []) for b in row]:
            b = {"text": b} if isinstance(b, str) else b
            if re.search(label, b["text"]):
                if chat["keyboard"].get("one_time_keyboard"):
                    chat["keyboard"] = None
                if b.get("request_location"):
                    await self.user_send(chat_id, uid, location={"latitude": 52.52 if lat is None else lat, "longitude": 13.405 if lon is None else lon})
                elif b.get("request_contact"):
                    await self.user_send(chat_id, uid, contact={"phone_number": "+10000000000", "first_name": self.users[uid]["first_name"], "user_id": uid})
                else:
                    await self.user_send(chat_id, uid, b["text"])
                return b
        raise LookupError(f"no button matching {label!r} in chat {chat_id}")

    async def user_stop_draft(self, chat_id):
        """Press Stop under the newest draft (Bot API 10.3; only if it was sent with can_stop)."""
        d = next((e for e in reversed(self.events) if e["kind"] == "draft" and e["chat_id"] == chat_id), None)
        if d is None or not d["can_stop"]:
            raise LookupError(f"no draft with can_stop in chat {chat_id}")
        return self._push("stopped_message_generation", {"chat": self.chats[chat_id]["info"], "draft_id": d["draft_id"]})

    async def user_react(self, chat_id, uid, message_id, emoji, old=()):
        """A reaction; in groups a bot hears of it only as an administrator."""
        if self.chats[chat_id]["type"] != "private" and self.chats[chat_id]["members"].get(self.me["id"]) != "administrator":
            return None

        def as_type(es):
            return [{"type": "emoji", "emoji": e} for e in es]
        return self._push("message_reaction", {"chat": self.chats[chat_id]["info"], "message_id": message_id, "user": self.users[uid],
                          "date": int(time.time()), "old_reaction": as_type(old), "new_reaction": as_type(emoji if isinstance(emoji, (list, tuple)) else [emoji])})

    async def set_bot_status(self, chat_id, uid, status):
        """Block ("kicked") or unblock ("member") in a private chat; add, promote or remove the bot in a group."""
        chat = self.chats[chat_id]
        old = self._member(chat, self.me["id"]) if chat["type"] != "private" else {"status": "kicked" if chat.get("blocked") else "member", "user": self.me}
        chat["members"][self.me["id"]] = status
        private = chat["type"] == "private"
        chat["blocked"], chat["bot_in"] = private and status == "kicked", private or status not in ("kicked", "left")
        new = {**self._member(chat, self.me["id"]), **({"until_date": 0} if status == "kicked" else {})}
        old |= {"until_date": 0} if old["status"] == "kicked" else {}
        u = self._push("my_chat_member", {"chat": chat["info"], "from": self.users[uid], "date": int(time.time()), "old_chat_member": old, "new_chat_member": new})
        came, was = new["status"] not in ("kicked", "left"), old["status"] not in ("kicked", "left")
        if not private and came != was:                   # the group's own line about it
            self._push("message", self._new(chat, self.users[uid], **({"new_chat_members": [self.me]} if came else {"left_chat_member": self.me})))
        return u

    async def user_join(self, chat_id, uid, joins=True):
        """Someone joins or leaves a group: a service message, and chat_member to a bot that is an administrator."""
        chat, user = self.chats[chat_id], self.users[uid]
        old = self._member(chat, uid)
        chat["members"][uid] = "member" if joins else "left"
        what = {"new_chat_members": [user]} if joins else {"left_chat_member": user}
        self._push("message", self._new(chat, user, **what))
        if chat["members"].get(self.me["id"]) == "administrator":
            self._push("chat_member", {"chat": chat["info"], "from": user, "date": int(time.time()), "old_chat_member": old, "new_chat_member": self._member(chat, uid)})

    async def topic(self, gid, uid, name):
        """A person opens a forum topic; returns its message_thread_id."""
        m = self._new(self.chats[gid], self.users[uid], forum_topic_created={"name": name, "icon_color": 7322096})
        m |= {"message_thread_id": m["message_id"], "is_topic_message": True}
        self.chats[gid]["topics"][m["message_id"]] = name
        self._push("message", m)
        return m["message_id"]

    async def push_raw(self, kind, payload):
        """Any other update, as the Bot API would write it (business_message, inline_query, poll_answer...)."""
        return self._made_up(self._push(kind, payload))

    def _made_up(self, update):
        """Remember an update that a test wrote, not this fake: nobody vouches for it."""
        if update:
            self.made_up.add(update["update_id"])
        return update

    async def migrate(self, gid, uid, new_id=None):
        """A basic group becomes a supergroup: two service messages, and the old id is refused from then on."""
        old, new_id = self.chats[gid], new_id or -1000000000000 - next(self.ids)
        self.add_group(new_id, old["info"]["title"], [u for u in old["members"] if u != self.me["id"]])
        self._push("message", self._new(old, self.users[uid], migrate_to_chat_id=new_id))
        self._push("message", self._new(self.chats[new_id], self.users[uid], migrate_from_chat_id=gid))
        old["migrated_to"] = new_id
        return new_id

    async def guest_ask(self, uid, text, chat_id=-1009999999999, title="Elsewhere", reply=None):
        """Someone mentions the bot in a chat it is not in (guest mode, Bot API 10.0)."""
        qid = str(next(self.ids))
        chat = self.chats.get(chat_id) or self._chat_state(chat_id, "supergroup", {"id": chat_id, "type": "supergroup", "title": title}, {uid: "member"}, bot_in=False)
        self.chats[chat_id] = chat
        self.callbacks["guest:" + qid] = {"chat_id": chat_id}
        m = self._new(chat, self.users[uid], reply=reply, text=text, entities=auto_entities(text), guest_query_id=qid)
        self._push("guest_message", m)
        return qid


FILE_KINDS_SET = set(FILE_KINDS.values())

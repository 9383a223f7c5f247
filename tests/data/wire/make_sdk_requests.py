"""Makes sdk_requests.json: what the official Python SDK sends for 50 prompts of all kinds.

    pip install anthropic && python make_sdk_requests.py > sdk_requests.json

tests/sdk/wire_equality_test.cpp builds the same prompts. Nothing goes over a network.
"""

import json
import sys

import anthropic
import httpx2

sent = {}
REPLY = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
    "stop_reason": "end_turn", "stop_sequence": None, "input_tokens": 1,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip


def receive(request: httpx2.Request) -> httpx2.Response:
    sent["body"] = json.loads(request.content)
    return httpx2.Response(200, json=REPLY)


client = anthropic.Anthropic(
    api_key="any", http_client=httpx2.Client(transport=httpx2.MockTransport(receive))
)
prompts = {}
M = "claude-sonnet-5-5"
HOUR = {"type": "ephemeral", "ttl": "1h"}
MARK = {"type": "ephemeral"}


def text(value, **more):
    return {"type": "text", "text": value, **more}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


HI = [user(text("Hi"))]


def add(name, messages=None, model=M, max_tokens=1024, **more):
    client.messages.create(model=model, max_tokens=max_tokens, messages=messages or HI, **more)
    prompts[name] = sent["body"]


def document(source, **more):
    return {"type": "document", "source": source, **more}


def tool(name, schema=None, **more):
    return {"name": name, "input_schema": schema or {"type": "object"}, **more}


CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"z": 1, "a": [True, None, 1.5]}}
LOOK = tool("look", {"type": "object", "properties": {"z": {"type": "integer"}, "a": {"type": "array"}}})


def answered(*content, **more):
    result = {"type": "tool_result", "tool_use_id": "toolu_1", **more}
    if content:
        result["content"] = list(content)
    return [user(text("Look")), assistant(CALL), user(result)]


def server(result_type, content, name="web_search"):
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": {"query": "fjord"}}
    return [user(text("Search")), assistant(use, {"type": result_type, "tool_use_id": "srvtoolu_1", "content": content},
            text("Found.")), user(text("More"))]  # fmt: skip


add("text")
add("string content", [{"role": "user", "content": "Hi"}])
add("string system", system="Be brief.")
add("string reply", [*HI, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Again"}])
add("system blocks", system=[text("One"), text("Two", cache_control=MARK)])
add("hour and minutes", [user(text("Hi", cache_control=MARK))], system=[text("Rules", cache_control=HOUR)])
add("automatic caching", cache_control=MARK)
add("automatic caching for an hour", cache_control=HOUR)
add("unicode", [user(text("Grüße, 世界 🌍 \u2028 \u0000\u001f\"\\/\t\r\n"))])
add("long text", [user(text("All work and no play. " * 2000))])
add("max_tokens zero", [user(text("x", cache_control=MARK))], max_tokens=0)
add("image base64", [user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}, text("What?"))])
add("image url", [user({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}, "cache_control": MARK})])
add("image file", [user({"type": "image", "source": {"type": "file", "file_id": "file_1"}})])
add("document base64", [user(document({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}, title="Law", context="Draft"))])
add("document text", [user(document({"type": "text", "media_type": "text/plain", "data": "Grass is green."}, citations={"enabled": True}))])
add("document content", [user(document({"type": "content", "content": [text("One"), text("Two")]}, citations={"enabled": True}, cache_control=HOUR))])
add("document url", [user(document({"type": "url", "url": "https://example.com/a.pdf"}))])
add("document file", [user(document({"type": "file", "file_id": "file_2"}, title="Law"))])
add("search results", [user({"type": "search_result", "source": "https://example.com", "title": "Fjords", "content": [text("Deep."), text("Cold.")], "citations": {"enabled": True}})])
add("citations replayed", [*HI, assistant(text("Green.", citations=[{"type": "char_location", "cited_text": "Grass is green.", "document_index": 0, "document_title": None, "start_char_index": 0, "end_char_index": 15}])), user(text("Sure?"))])
add("page citation", [*HI, assistant(text("Green.", citations=[{"type": "page_location", "cited_text": "Green", "document_index": 1, "document_title": "Law", "start_page_number": 2, "end_page_number": 3}])), user(text("Sure?"))])
add("search citation", [*HI, assistant(text("Deep.", citations=[{"type": "search_result_location", "cited_text": "Deep.", "search_result_index": 0, "source": "https://example.com", "title": "Fjords", "start_block_index": 0, "end_block_index": 1}])), user(text("Sure?"))])
add("thinking replayed", [*answered(text("Fine"))[:1], assistant({"type": "thinking", "thinking": "Let me look.", "signature": "c2ln"}, CALL), answered(text("Fine"))[2]], tools=[LOOK])
add("redacted thinking", [*HI, assistant({"type": "redacted_thinking", "data": "ZGF0YQ=="}, text("Hello")), user(text("Again"))])
add("tool call and text result", answered(text("Fine")), tools=[LOOK])
add("tool result empty", answered(), tools=[LOOK])
add("tool result error", answered(text("Error: gone"), is_error=True), tools=[LOOK])
add("tool result nested", answered(text("See"), {"type": "image", "source": {"type": "url", "url": "https://example.com/b.png"}}, {"type": "search_result", "source": "s", "title": "t", "content": [text("c")]}, document({"type": "text", "media_type": "text/plain", "data": "d"}), cache_control=MARK), tools=[LOOK])
add("tool input empty", [user(text("Go")), assistant({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}), answered(text("Fine"))[2]], tools=[LOOK])
add("parallel calls", [user(text("Look twice")), assistant(CALL, {**CALL, "id": "toolu_2"}), user({"type": "tool_result", "tool_use_id": "toolu_1", "content": [text("1")]}, {"type": "tool_result", "tool_use_id": "toolu_2", "content": [text("2")]}, text("And?"))], tools=[LOOK])
add("tool custom", tools=[tool("weather", {"type": "object", "properties": {"zone": {"type": "string"}, "area": {"enum": ["x", "y"]}}, "required": ["zone"], "additionalProperties": False}, description="Weather", cache_control=HOUR)])
add("tool strict", tools=[tool("weather", strict=True, input_examples=[{"b": 1, "a": 2}])])
add("tool deferred", tools=[tool("a"), tool("b", defer_loading=True, allowed_callers=["direct", "code_execution_20250825"], eager_input_streaming=True)])
add("tools of the provider", tools=[{"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "allowed_domains": ["example.com"]}, {"type": "bash_20250124", "name": "bash", "cache_control": MARK}])
add("tool choice auto", tools=[LOOK], tool_choice={"type": "auto", "disable_parallel_tool_use": True})
add("tool choice any", model="claude-sonnet-5", tools=[LOOK], tool_choice={"type": "any"})
add("tool choice tool", model="claude-sonnet-5", tools=[LOOK], tool_choice={"type": "tool", "name": "look"})
add("tool choice none", tools=[LOOK], tool_choice={"type": "none"})
add("thinking adaptive", thinking={"type": "adaptive", "display": "summarized"}, output_config={"effort": "xhigh"})
add("thinking enabled", model="claude-haiku-4-5", max_tokens=4096, thinking={"type": "enabled", "budget_tokens": 2048})
add("thinking disabled", thinking={"type": "disabled"}, output_config={"effort": "low"})
add("thinking between tools", thinking={"type": "between_tools"})
add("output format", output_config={"format": {"type": "json_schema", "schema": {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "null"}}, "additionalProperties": False}}})
add("settings", stop_sequences=["\n\nHuman:", "stop"], metadata={"user_id": "u-1"}, service_tier="standard_only", inference_geo="us", container="container_1")
add("diagnostics first", diagnostics={"previous_message_id": None})
add("diagnostics", diagnostics={"previous_message_id": "msg_0"})
add("web search", server("web_search_tool_result", [{"type": "web_search_result", "url": "https://example.com", "title": "T", "encrypted_content": "abc", "page_age": None}]))
add("web search error", server("web_search_tool_result", {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}))
add("code execution and upload", [user({"type": "container_upload", "file_id": "file_3"}, text("Run")), *server("bash_code_execution_tool_result", {"type": "bash_code_execution_result", "stdout": "1\n", "stderr": "", "return_code": 0, "content": []}, "bash_code_execution")[1:]])
add("beta fields and blocks", [user({"type": "compaction", "content": "Summary", "cache_control": MARK}), *HI], extra_body={"context_management": {"edits": [{"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 3}}]}})
add("system message inside", [*HI, {"role": "system", "content": [text("Now in French.")]}], speed="fast")

json.dump(prompts, sys.stdout, ensure_ascii=False, indent=1)
print()
print(len(prompts), "prompts, anthropic", anthropic.__version__, file=sys.stderr)

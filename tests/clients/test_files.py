"""Files with the official client: upload, list, metadata, delete, and as documents of a message."""

from __future__ import annotations

import anthropic
import pytest
from conftest import client_of

MODEL = "claude-sonnet-4-6"


def test_upload_and_metadata(tiny_client):
    file = tiny_client.files.upload(file=("notes.txt", b"The fjord is long.", "text/plain"))
    assert file.id.startswith("file_")
    assert (file.type, file.filename, file.mime_type) == ("file", "notes.txt", "text/plain")
    assert file.size_bytes == 18
    assert file.downloadable is False
    assert file.expires_at is None
    assert tiny_client.files.retrieve_metadata(file.id) == file
    assert tiny_client.beta.files.retrieve_metadata(file.id).filename == "notes.txt"


@pytest.mark.parametrize("name", ['quo"te.txt', "line\nbreak.txt", "naïve ☃.txt", "semi;colon=.txt"])
def test_names_survive_the_form(tiny_client, name):
    assert tiny_client.files.upload(file=(name, b"x")).filename == name


def test_any_bytes_are_taken(tiny_client):
    content = bytes(range(256)) * 5000 + b"\r\n--"
    assert tiny_client.files.upload(file=("a.bin", content)).size_bytes == len(content)


def test_expiry(gateway_factory):
    gateway = gateway_factory("--model", "tiny", "--virtual-clock")
    with client_of(gateway) as client:
        file = client.files.upload(file=("a.txt", b"x"), expires_in_seconds=3600)
        assert (file.expires_at - file.created_at).total_seconds() == 3600
        with pytest.raises(anthropic.BadRequestError, match="File not downloadable"):
            client.files.download(file.id)
        gateway.request("POST", "/incipit/clock", {"advance_seconds": 3600})
        with pytest.raises(anthropic.NotFoundError) as caught:
            client.files.download(file.id)
        assert caught.value.body["error"]["details"]["error_code"] == "file_expired"


def test_lists_and_deletes(gateway_factory):
    with client_of(gateway_factory("--model", "tiny")) as client:
        made = [client.files.upload(file=(f"{i}.txt", b"x")).id for i in range(7)][::-1]
        assert [file.id for file in client.files.list(limit=3)] == made
        assert [file.id for file in client.beta.files.list(limit=3)] == made
        chosen = client.files.list(ids=[made[5], made[1], "file_none"])
        assert [file.id for file in chosen.data] == [made[1], made[5]]
        deleted = client.files.delete(made[0])
        assert (deleted.id, deleted.type) == (made[0], "file_deleted")
        assert [file.id for file in client.files.list()] == made[1:]
        with pytest.raises(anthropic.NotFoundError, match=made[0]):
            client.files.retrieve_metadata(made[0])


def test_a_text_file_is_read_as_a_document(tiny_client):
    text = "A fjord is a long, narrow inlet. " * 20
    file = tiny_client.files.upload(file=("fjords.txt", text.encode(), "text/plain"))

    def tokens(source: dict) -> int:
        content = [{"type": "document", "source": source}, {"type": "text", "text": "How long?"}]
        messages = [{"role": "user", "content": content}]
        message = tiny_client.messages.create(model=MODEL, max_tokens=2, messages=messages)
        return message.usage.input_tokens

    inline = tokens({"type": "text", "media_type": "text/plain", "data": text})
    assert tokens({"type": "file", "file_id": file.id}) == inline > len(text)


def test_a_batch_reads_files_of_its_workspace(tiny_client):
    file = tiny_client.files.upload(file=("a.txt", b"hello", "text/plain"))
    content = [{"type": "document", "source": {"type": "file", "file_id": file.id}},
               {"type": "text", "text": "?"}]  # fmt: skip
    batch = tiny_client.messages.batches.create(requests=[{
        "custom_id": "a",
        "params": {"model": MODEL, "max_tokens": 1, "messages": [{"role": "user", "content": content}]},
    }])  # fmt: skip
    while batch.processing_status != "ended":
        batch = tiny_client.messages.batches.retrieve(batch.id)
    assert batch.request_counts.succeeded == 1


def test_the_memory_of_all_files_is_bounded(gateway_factory):
    with client_of(gateway_factory("--model", "tiny", "--files-memory", "1M")) as client:
        first = client.files.upload(file=("a", b"x" * 900_000))
        with pytest.raises(anthropic.BadRequestError) as caught:
            client.files.upload(file=("b", b"x" * 900_000))
        assert caught.value.body["error"]["details"]["error_code"] == "storage_quota_exceeded"
        client.files.delete(first.id)
        client.files.upload(file=("b", b"x" * 900_000))


def test_a_body_over_500_mib_is_refused_before_it_is_read(tiny):
    headers = {"content-type": "multipart/form-data; boundary=b", "content-length": str((500 << 20) + 1)}
    status, _, body = tiny.request("POST", "/v1/files", None, headers)
    assert status == 413
    assert "request_too_large" in body

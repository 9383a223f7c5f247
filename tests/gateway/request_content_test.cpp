// Documents, search results, images and citations: their shapes, what the model reads of them, and
// what identifies them (anthropic-wire sections 5, 8, W-4; anthropic-cache-semantics C-54).
#include "request_bodies.h"

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace incipit::gateway {
namespace {

struct Case {
  std::string body;
  std::string message;  // "" = accepted
};

void check_all(const std::vector<Case>& cases, const RequestContext& context = older_version()) {
  for (const Case& test : cases) {
    CAPTURE(test.body);
    CHECK(complaint(test.body, context) == test.message);
  }
}

std::string document(std::string_view source, std::string_view more = "") {
  return R"({"type":"document","source":)" + std::string(source)
         + (more.empty() ? "" : "," + std::string(more)) + "}";
}

std::string image(std::string_view source, std::string_view more = "") {
  return R"({"type":"image","source":)" + std::string(source)
         + (more.empty() ? "" : "," + std::string(more)) + "}";
}

const std::string plain =
    R"({"type":"text","media_type":"text/plain","data":"The grass is green."})";
const std::string found =
    R"({"type":"search_result","source":"https://a.example","title":"A","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}])";

// The only user block as the model reads it.
std::string reads(std::string_view block, const RequestContext& context = older_version()) {
  return conversation(blocks(block), context).items.at(0).text;
}

std::string in_result(std::string_view content) {
  return messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[
      {"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[
      {"type":"tool_result","tool_use_id":"t","content":[)"
                  + std::string(content) + "]}]}]");
}

TEST_CASE("documents of text are read with their title and context") {
  CHECK(reads(document(plain)) == "Document\n\nThe grass is green.");
  CHECK(reads(document(plain, R"("title":"Lawns","context":"from a leaflet")"))
        == "Document: Lawns\nContext: from a leaflet\n\nThe grass is green.");
  CHECK(reads(document(plain, R"("title":null,"context":null,"citations":null)"))
        == "Document\n\nThe grass is green.");
  CHECK(reads(document(R"({"type":"content","content":"whole"})")) == "Document\n\nwhole");
  CHECK(
      reads(document(
          R"({"type":"content","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})"))
      == "Document\n\na\nb");
}

TEST_CASE("search results are read with title and source") {
  CHECK(reads(found + "}") == "Search result: A\nSource: https://a.example\n\none\ntwo");
}

TEST_CASE("a tool result may hold documents and search results") {
  const Conversation parsed = conversation(
      in_result(R"({"type":"text","text":"x"},)" + document(plain) + "," + found + "}"));
  CHECK(parsed.items.back().kind == ItemKind::tool_result);
  CHECK(parsed.items.back().text
        == "x\nDocument\n\nThe grass is green.\nSearch result: A\nSource: "
           "https://a.example\n\none\ntwo");
}

TEST_CASE("documents of uploaded files hold the file's text") {
  RequestContext context = older_version();
  int fetches = 0;
  context.find_file = [&](std::string_view id) -> std::optional<FoundFile> {
    ++fetches;
    if (id == "file_text") return FoundFile{"text/plain; charset=utf-8", "héllo"};
    if (id == "file_pdf") return FoundFile{"application/pdf", "%PDF-1.7"};
    if (id == "file_image") return FoundFile{"image/png", "png"};
    if (id == "file_latin") return FoundFile{"text/plain", "h\xe9llo"};
    if (id == "file_large") return FoundFile{"text/plain", std::string(20 << 20, 'x')};
    return std::nullopt;
  };
  const auto file = [](std::string_view id) {
    return document(R"({"type":"file","file_id":")" + std::string(id) + "\"}");
  };
  CHECK(reads(file("file_text"), context) == "Document\n\nhéllo");
  CHECK(complaint(blocks(file("file_pdf")), context)
            .starts_with("messages.0.content.0: file 'file_pdf' is a PDF document: the model of "
                         "this gateway takes text only"));
  CHECK(complaint(blocks(file("file_image")), context)
        == "messages.0.content.0: file 'file_image' is of type 'image/png'; a document is "
           "application/pdf or text/plain");
  CHECK(complaint(blocks(file("file_latin")), context)
        == "messages.0.content.0: file 'file_latin' is not text in UTF-8");
  for (const RequestContext& none : {context, older_version()}) {
    try {
      (void)parse_messages(blocks(file("file_gone")), none);
      FAIL("accepted");
    } catch (const ApiError& error) {
      CHECK(error.status == 404);
      CHECK(error.type == "not_found_error");
      CHECK(std::string(error.what()) == "File not found: file_gone");
    }
  }
  // A file is fetched once, however often it is named, and the prompt stays bounded.
  fetches = 0;
  try {
    (void)parse_messages(blocks(file("file_large") + "," + file("file_large")), context);
    FAIL("accepted");
  } catch (const ApiError& error) {
    CHECK(error.status == 413);
    CHECK(error.type == "request_too_large");
  }
  CHECK(fetches == 1);
}

TEST_CASE("broken documents are told what is broken") {
  const std::string at = "messages.0.content.0.document";
  check_all({
      {blocks(R"({"type":"document"})"), at + ".source: Field required"},
      {blocks(document(R"({"type":"disk"})")), at
                                                   + ".source: Input tag 'disk' found using 'type' "
                                                     "does not match any of the expected tags: "
                                                     "'base64', 'content', 'file', 'text', 'url'"},
      {blocks(document(R"({"type":"text","media_type":"text/html","data":""})")),
       at + ".source.text.media_type: Input should be 'text/plain'"},
      {blocks(document(R"({"type":"text","media_type":"text/plain"})")),
       at + ".source.text.data: Field required"},
      {blocks(document(R"({"type":"content","content":7})")),
       at + ".source.content.content: Input should be a valid string or list"},
      {blocks(document(R"({"type":"content","content":[{"type":"document"}]})")),
       at
           + ".source.content.content.0: Input tag 'document' found using 'type' does not match "
             "any "
             "of the expected tags: 'image', 'text'"},
      {blocks(document(R"({"type":"content","content":[{"type":"text"}]})")),
       at + ".source.content.content.0.text.text: Field required"},
      {blocks(document(R"({"type":"file","file_id":1})")),
       at + ".source.file.file_id: Input should be a valid string"},
      {blocks(document(plain, R"("name":"x")")), at + ".name: Extra inputs are not permitted"},
      {blocks(document(plain, R"("title":1)")), at + ".title: Input should be a valid string"},
      {blocks(document(plain, R"("citations":{"enabled":1})")),
       at + ".citations.enabled: Input should be a valid boolean"},
      {blocks(document(plain, R"("citations":[])")),
       at + ".citations: Input should be a valid dictionary"},
      {blocks(document(R"({"type":"base64","media_type":"image/png","data":"AAAA"})")),
       at + ".source.base64.media_type: Input should be 'application/pdf'"},
      {blocks(R"({"type":"search_result","title":"t","content":[]})"),
       "messages.0.content.0.search_result.source: Field required"},
      {blocks(R"({"type":"search_result","source":"s","title":"t","content":"x"})"),
       "messages.0.content.0.search_result.content: Input should be a valid list"},
      {blocks(R"({"type":"search_result","source":"s","title":"t","content":[{"type":"image"}]})"),
       "messages.0.content.0.search_result.content.0.type: Input should be 'text'"},
  });
}

TEST_CASE("images are checked whole before they are refused") {
  const std::string at = "messages.0.content.0.image";
  const auto png = [](std::string_view data) {
    return image(R"({"type":"base64","media_type":"image/png","data":")" + std::string(data)
                 + "\"}");
  };
  check_all({
      {blocks(image(R"({"type":"base64","media_type":"image/bmp","data":"AAAA"})")),
       at
           + ".source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or "
             "'image/webp'"},
      {blocks(image(R"({"type":"text","data":"x"})")),
       at
           + ".source: Input tag 'text' found using 'type' does not match any of the expected "
             "tags: "
             "'base64', 'file', 'url'"},
      {blocks(image(R"({"type":"url"})")), at + ".source.url.url: Field required"},
      {blocks(
           image(R"({"type":"url","url":"u"})", R"("transformations":{"oversized_image":"crop"})")),
       at + ".transformations.oversized_image: Input should be 'downsize' or 'error'"},
      {blocks(png("AAA")), at + ".source.base64.data: invalid base64 data"},
      {blocks(png("A===")), at + ".source.base64.data: invalid base64 data"},
      {blocks(png("AA-_")), at + ".source.base64.data: invalid base64 data"},
      {blocks(png("")), at + ".source.base64.data: the data is empty"},
      // 5242880 bytes and one more.
      {blocks(png(std::string(6'990'507, 'A') + "=")),
       "messages.0.content.0: `image` blocks are not supported: the model of this gateway takes "
       "text only; say what the image shows in a `text` block"},
      {blocks(png(std::string(6'990'508, 'A'))),
       at + ".source.base64: image exceeds 5 MB maximum: 5242881 bytes > 5242880 bytes"},
  });
  for (const char* valid : {R"({"type":"url","url":"https://a.example/x.png"})",
                            R"({"type":"file","file_id":"file_1"})"}) {
    CHECK(complaint(blocks(image(valid, R"("transformations":{"oversized_image":"downsize"})")))
              .starts_with("messages.0.content.0: `image` blocks are not supported"));
  }
  CHECK(complaint(in_result(png("AAAA")))
            .starts_with("messages.2.content.0.tool_result.content.0: `image` blocks are not "));
}

TEST_CASE("PDF and URL documents are refused with what to send instead") {
  const std::string pdf =
      document(R"({"type":"base64","media_type":"application/pdf","data":"JVBERg=="})");
  const std::string instead =
      "send the text itself, as source {\"type\":\"text\",\"media_type\":\"text/plain\"";
  for (const std::string& source : {pdf, document(R"({"type":"url","url":"https://a.example"})")}) {
    const std::string message = complaint(blocks(source));
    CHECK(message.starts_with("messages.0.content.0: "));
    CHECK(message.find(instead) != std::string::npos);
  }
  CHECK(
      complaint(blocks(document(R"({"type":"base64","media_type":"application/pdf","data":"%"})")))
      == "messages.0.content.0.document.source.base64.data: invalid base64 data");
}

TEST_CASE("sides of the conversation") {
  const auto from_assistant = [](std::string_view block) {
    return messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[)"
                    + std::string(block) + R"(]},{"role":"user","content":"r"}])");
  };
  CHECK(complaint(from_assistant(document(plain))).empty());
  // W-4 (b)
  CHECK(complaint(from_assistant(document(plain)), newer_version())
        == "messages.1.content.0: `document` blocks can only be in `user` messages");
  CHECK(complaint(in_result(document(plain)), newer_version()).empty());
  CHECK(complaint(from_assistant(found + "}"))
        == "messages.1.content.0: `search_result` blocks can only be in `user` messages");
}

const std::string cited =
    R"({"type":"text","text":"x","citations":[{"type":"char_location","cited_text":"g","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1}]})";

TEST_CASE("citations are taken where the version allows them (W-4 c)") {
  const std::string answered = messages(R"([{"role":"user","content":"q"},
      {"role":"assistant","content":[)" + cited
                                        + R"(]},{"role":"user","content":"r"}])");
  const std::string in_search =
      R"({"type":"search_result","source":"s","title":"t","content":[)" + cited + "]}";
  CHECK(complaint(answered).empty());
  CHECK(complaint(answered, newer_version()).empty());
  CHECK(complaint(blocks(cited)).empty());
  const std::string refused = ": citations are not permitted on text blocks in user messages";
  CHECK(complaint(blocks(cited), newer_version())
        == "messages.0.content.0.text.citations" + refused);
  CHECK(complaint(blocks(in_search), newer_version())
        == "messages.0.content.0.search_result.content.0.citations" + refused);
  CHECK(complaint(blocks(R"({"type":"text","text":"x","citations":[]})"), newer_version()).empty());
  CHECK(complaint(blocks(document(plain, R"("citations":{"enabled":true})")), newer_version())
            .empty());
}

TEST_CASE("every kind of citation is known, and a broken one is named") {
  const auto with = [](std::string_view citation) {
    return blocks(R"({"type":"text","text":"x","citations":[)" + std::string(citation) + "]}");
  };
  for (
      const char* citation :
      {R"({"type":"page_location","cited_text":"c","document_index":0,"document_title":"d","start_page_number":1,"end_page_number":2})",
       R"({"type":"content_block_location","cited_text":"c","document_index":0,"document_title":"d","start_block_index":1,"end_block_index":2})",
       R"({"type":"search_result_location","cited_text":"c","source":"s","title":null,"search_result_index":0,"start_block_index":1,"end_block_index":2})",
       R"({"type":"web_search_result_location","cited_text":"c","url":"u","title":"t","encrypted_index":"e"})",
       R"({"type":"char_location","cited_text":"c","document_index":0,"document_title":"d","start_char_index":1,"end_char_index":2,"file_id":null})"}) {
    CAPTURE(citation);
    CHECK(complaint(with(citation)).empty());
  }
  const std::string at = "messages.0.content.0.text.citations.0";
  check_all({
      {with(R"({"type":"line_location"})"),
       at
           + ": Input tag 'line_location' found using 'type' does not match any of the expected "
             "tags: 'char_location', 'content_block_location', 'page_location', "
             "'search_result_location', 'web_search_result_location'"},
      {with(R"({"type":"page_location"})"), at + ".page_location.cited_text: Field required"},
      {with("7"), at + ": Input should be a valid dictionary"},
  });
}

TEST_CASE("what a document is made of identifies it; its marker does not") {
  const auto key = [](const std::string& block) {
    return conversation(blocks(block)).items.at(0).key_bytes;
  };
  const std::string same = key(document(plain, R"("title":"t")"));
  CHECK(same
        == key(
            document(plain, R"("title":"t","context":null,"cache_control":{"type":"ephemeral"})")));
  CHECK(same != key(document(plain)));
  CHECK(same != key(document(plain, R"("title":"u")")));
  CHECK(same != key(document(plain, R"("title":"t","context":"c")")));
  CHECK(same != key(document(plain, R"("title":"t","citations":{"enabled":true})")));
  // The text of a document is not the same as text, nor one part the same as two.
  CHECK(key(document(plain)) != key(R"({"type":"text","text":"Document\n\nThe grass is green."})"));
  CHECK(
      key(document(R"({"type":"content","content":"a\nb"})"))
      != key(document(
          R"({"type":"content","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})")));
  CHECK(key(cited) != key(R"({"type":"text","text":"x"})"));
  CHECK(key(R"({"type":"text","text":"x","citations":[]})")
        == key(R"({"type":"text","text":"x"})"));
}

TEST_CASE("citations and speed change the key before the system text (C-54)") {
  const auto before_system = [](const std::string& body) {
    return conversation(body).key_before_system;
  };
  const std::string off = before_system(blocks(document(plain)));
  CHECK(off == before_system(blocks(document(plain, R"("citations":{"enabled":false})"))));
  CHECK(off != before_system(blocks(document(plain, R"("citations":{"enabled":true})"))));
  CHECK(off != before_system(in_result(document(plain, R"("citations":{"enabled":true})"))));
  CHECK(off == before_system(fields(R"("speed":"standard")")));
  CHECK(off == before_system(fields(R"("speed":null)")));
  CHECK(off != before_system(fields(R"("speed":"fast")")));
}

TEST_CASE("markers on parts of a block act at its end and count (C-12)") {
  const std::string mark = R"("cache_control":{"type":"ephemeral"})";
  const std::string marked = R"({"type":"text","text":"a",)" + mark + "}";
  const std::string parts =
      document(R"({"type":"content","content":[)" + marked + "," + marked + "]}", mark);
  const Conversation parsed = conversation(blocks(R"({"type":"text","text":"x"},)" + parts));
  CHECK_FALSE(parsed.items[0].marker);
  CHECK(parsed.items[1].marker == Ttl::five_minutes);
  CHECK(complaint(in_result(parts)).empty());
  CHECK(complaint(in_result(parts + "," + parts))
        == "A maximum of 4 blocks with cache_control may be provided. Found 6.");
  const std::string hour =
      R"({"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}})";
  CHECK(complaint(blocks(marked + "," + document(R"({"type":"content","content":[)" + hour + "]}")))
            .starts_with("messages.0.content.1.source.content.0.cache_control.ttl: a ttl='1h'"));
}

TEST_CASE("hostile content takes linear time") {
  const auto took = [](const std::string& body) {
    const auto began = std::chrono::steady_clock::now();
    CHECK_FALSE(complaint(body) == "?");
    return std::chrono::steady_clock::now() - began;
  };
  constexpr std::size_t size = 4 << 20;
  std::string many_parts = R"({"type":"text","text":"x"})";
  while (many_parts.size() < size)
    many_parts += R"(,{"type":"text","text":"x"})";
  std::string many_fields = R"("a0":0)";
  for (int i = 1; many_fields.size() < size; ++i)
    many_fields += ",\"a" + std::to_string(i) + "\":0";
  const std::vector<std::string> bodies = {
      blocks(image(R"({"type":"base64","media_type":"image/png","data":")" + std::string(size, 'A')
                   + "\"}")),
      blocks(image(R"({"type":"base64","media_type":"image/png","data":")" + std::string(size, '=')
                   + "\"}")),
      blocks(document(R"({"type":"content","content":[)" + many_parts + "]}")),
      in_result(many_parts),
      blocks(many_parts),
      blocks(R"({"type":"text","text":"x",)" + many_fields + "}"),
      fields(many_fields),
      fields(R"("tools":[{"name":"f","input_schema":{"type":"object",)" + many_fields + "}}]"),
  };
  for (const std::string& body : bodies) {
    CAPTURE(body.substr(0, 120));
    // Anything quadratic would take hours.
    CHECK(took(body) < std::chrono::seconds(20));
  }
}

}  // namespace
}  // namespace incipit::gateway

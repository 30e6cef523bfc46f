// The client @anthropic-ai/sdk, unmodified, against sluice serve.
import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { jsonSchemaOutputFormat } from "@anthropic-ai/sdk/helpers/json-schema";
import { checkCalls, checkRetry, checkWeather, city, counting, destinations, failure, key, pixel, poorKey, refusing, url, uuid, weather, words } from "./support.mjs";

const hello = [{ role: "user", content: "hello" }];
const tools = ["a", "b"].map((name) => ({ name, description: "the weather of a city", input_schema: city }));

function connect(options = {}) {
  const { sent, fetch } = counting();
  return { sent, client: new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0, fetch, ...options }) };
}

const text = (message) => message.content.filter((b) => b.type === "text").map((b) => b.text).join("");
const calls = (message) => message.content.filter((b) => b.type === "tool_use").map((b) => [b.id, b.name, b.input]);

// bothWays asks for the same answer whole and as a stream that the client puts together.
async function bothWays(request) {
  const { client } = connect();
  const params = { max_tokens: 2000, messages: hello, ...request };
  const whole = await client.messages.create(params);
  const stream = client.messages.stream(params);
  const events = [];
  stream.on("streamEvent", (event) => events.push(event.type));
  const streamed = await stream.finalMessage();
  assert.equal(events.filter((type) => type === "message_start").length, 1);
  assert.equal(events.at(-1), "message_stop");
  return { whole, streamed };
}

for (const to of destinations) {
  for (const model of [`${to}/plain`, `${to}/fails-over`]) {
    test(`${model}: the same answer whole and streamed`, async () => {
      const { whole, streamed } = await bothWays({ model });
      assert.equal(text(streamed), text(whole));
      for (const message of [whole, streamed]) {
        assert.equal(words(text(message)), 8);
        assert.equal(message.stop_reason, "end_turn");
        assert.equal(message.model, whole.model);
        assert.equal(message.usage.output_tokens, 8);
        const { input_tokens, cache_read_input_tokens } = message.usage;
        assert.ok(input_tokens > 0, JSON.stringify(message.usage));
        assert.equal(cache_read_input_tokens ?? 0, model.endsWith("plain") ? 0 : 3);
      }
      assert.match(whole._request_id, uuid);
    });
  }

  test(`${to}: one tool`, async () => {
    for (const message of Object.values(await bothWays({ model: `${to}/tool`, tools }))) {
      assert.equal(message.stop_reason, "tool_use");
      checkCalls(calls(message), ["a"]);
    }
  });

  test(`${to}: text and parallel tools`, async () => {
    for (const message of Object.values(await bothWays({ model: `${to}/tools`, tools }))) {
      assert.equal(message.stop_reason, "tool_use");
      assert.match(text(message), /^let me look/);
      checkCalls(calls(message), ["a", "b"]);
    }
  });

  test(`${to}: the results of tools go back, an image among them`, async () => {
    const { client } = connect();
    const { content } = await client.messages.create({ model: `${to}/tools`, max_tokens: 2000, messages: hello, tools });
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } };
    const results = content.filter((b) => b.type === "tool_use").map((b, i) => ({
      type: "tool_result", tool_use_id: b.id, content: i ? [{ type: "text", text: "this" }, image] : "sunny",
    }));
    const messages = [...hello, { role: "assistant", content }, { role: "user", content: results }];
    const answer = await client.messages.create({ model: `${to}/plain`, max_tokens: 2000, messages, tools });
    assert.match(text(answer), /images=1 tools=2/);
  });

  test(`${to}: structured output, parsed by the client`, async () => {
    const { client } = connect();
    const answer = await client.messages.parse({
      model: `${to}/obeys`, max_tokens: 2000, messages: hello, output_config: { format: jsonSchemaOutputFormat(weather) },
    });
    checkWeather(answer.parsed_output);
  });

  test(`${to}: an image`, async () => {
    const { client } = connect();
    const source = { type: "base64", media_type: "image/png", data: pixel };
    const content = [{ type: "text", text: "what is it?" }, { type: "image", source }];
    const answer = await client.messages.create({ model: `${to}/plain`, max_tokens: 2000, messages: [{ role: "user", content }] });
    assert.match(text(answer), /images=1/);
  });

  test(`${to}: thinking, and back again`, async () => {
    const thinking = { type: "enabled", budget_tokens: 1024 };
    const { whole, streamed } = await bothWays({ model: `${to}/thinks`, thinking });
    for (const message of [whole, streamed]) {
      const [first, second] = message.content;
      assert.equal(first.type, "thinking");
      assert.equal(words(first.thinking), 4);
      assert.equal(second.type, "text");
      assert.equal(message.usage.output_tokens, 12);
      if (to === "anthropic") assert.ok(first.signature);
    }
    assert.equal(streamed.content[0].thinking, whole.content[0].thinking);
    const { client } = connect();
    const messages = [...hello, { role: "assistant", content: streamed.content }, { role: "user", content: "and?" }];
    const answer = await client.messages.create({ model: `${to}/thinks`, max_tokens: 2000, thinking, messages });
    assert.match(text(answer), /messages=[34]/);
  });

  test(`${to}: the limit of tokens and a refusal are stop reasons`, async () => {
    for (const message of Object.values(await bothWays({ model: `${to}/long`, max_tokens: 20 }))) {
      assert.equal(message.stop_reason, "max_tokens");
      assert.equal(message.usage.output_tokens, 20);
    }
    for (const message of Object.values(await bothWays({ model: `${to}/${refusing.includes(to) ? "refuses" : "filtered"}` }))) {
      assert.equal(message.stop_reason, "refusal");
    }
  });

  test(`${to}: a throttle says when to come back`, async () => {
    const { client } = connect();
    const error = await failure(client.messages.create({ model: `${to}/busy`, max_tokens: 9, messages: hello }));
    assert.ok(error instanceof Anthropic.RateLimitError, String(error));
    assert.equal(error.error.error.type, "rate_limit_error");
    checkRetry((name) => error.headers.get(name));
  });

  test(`${to}: a walk that failed is an error that may be retried`, async () => {
    const { client } = connect();
    const error = await failure(client.messages.create({ model: `${to}/overloaded`, max_tokens: 9, messages: hello }));
    assert.ok(error instanceof Anthropic.InternalServerError, String(error));
    assert.equal(error.status, 502);
    assert.equal(error.error.error.type, "api_error");
    assert.notEqual(error.headers.get("x-should-retry"), "false");
  });

  test(`${to}: a stream that breaks is an error, never a short answer (S3)`, async () => {
    const { client } = connect();
    let heard = "";
    const stream = client.messages.stream({ model: `${to}/breaks`, max_tokens: 2000, messages: hello });
    stream.on("text", (delta) => (heard += delta));
    await assert.rejects(stream.finalMessage(), Anthropic.APIError);
    assert.notEqual(heard, "");
  });

  test(`${to}: a stream can be left (S7)`, async () => {
    const { client } = connect();
    const stream = await client.messages.create({ model: `${to}/stalls`, max_tokens: 2000, messages: hello, stream: true });
    for await (const event of stream) if (event.type === "content_block_delta") break; // leaving the loop aborts
    assert.ok(stream.controller.signal.aborted);
  });

  test(`${to}: tokens are counted (P11)`, async () => {
    const { client } = connect();
    const count = (messages) => client.messages.countTokens({ model: `${to}/plain`, messages, tools });
    const { input_tokens: few } = await count(hello);
    const { input_tokens: many } = await count([{ role: "user", content: "hello ".repeat(200) }]);
    assert.ok(few > 0 && many >= few + 150, `${few}, ${many}`);
  });
}

test("the beta client, the prefix and a bearer token reach the same", async () => {
  const { client } = connect({ baseURL: `${url}/anthropic`, apiKey: null, authToken: key });
  const answer = await client.beta.messages.create({
    model: "anthropic/plain", max_tokens: 2000, messages: hello, betas: ["context-management-2025-06-27"],
  });
  assert.equal(answer.stop_reason, "end_turn");
});

test("overload is 529 and says when to come back (P11)", async () => {
  const { client } = connect();
  const call = () => failure(client.messages.create({ model: "shut", max_tokens: 9, messages: hello }));
  // The failure that opens the only route's circuit, and the one probe that a model
  // without any route left gets (H8).
  for (const _ of [1, 2]) assert.equal((await call()).status, 502);
  const error = await call();
  assert.ok(error instanceof Anthropic.InternalServerError, String(error));
  assert.equal(error.status, 529);
  assert.equal(error.error.error.type, "overloaded_error");
  checkRetry((name) => error.headers.get(name));
});

test("models are listed and found in this client's shape (P11)", async () => {
  const { client } = connect();
  const listed = [];
  for await (const model of client.models.list({ limit: 20 })) listed.push(model);
  const names = listed.map((model) => model.id);
  assert.ok(names.includes("plain") && names.includes("gemini/tools"), names.join());
  assert.equal(new Set(names).size, names.length);
  assert.ok(listed.every((model) => model.type === "model" && model.display_name && !Number.isNaN(Date.parse(model.created_at))));
  assert.equal((await client.models.retrieve("plain")).id, "plain");
  await assert.rejects(client.models.retrieve("nothing"), Anthropic.NotFoundError);
});

// Faults of the caller: the client's own class for each, and no retry although the
// client would.
for (const [name, options, request, kind, type] of [
  ["an unknown key", { apiKey: "sk-sluice-nobody" }, {}, Anthropic.AuthenticationError, "authentication_error"],
  ["an unknown model", {}, { model: "nothing" }, Anthropic.NotFoundError, "not_found_error"],
  ["a request that is none", {}, { messages: [] }, Anthropic.BadRequestError, "invalid_request_error"],
  ["no money left", { apiKey: poorKey }, {}, Anthropic.RateLimitError, "rate_limit_error"],
]) {
  for (const stream of [false, true]) {
    test(`${name} is ${kind.name} and not retried${stream ? ", streamed" : ""}`, async () => {
      const { client, sent } = connect({ maxRetries: 2, ...options });
      const error = await failure(client.messages.create({ model: "anthropic/plain", max_tokens: 9, messages: hello, stream, ...request }));
      assert.ok(error instanceof kind, String(error));
      assert.equal(error.error.error.type, type);
      assert.match(error.requestID, uuid);
      assert.equal(error.requestID, error.headers.get("x-request-id"));
      assert.equal(sent.requests, 1);
    });
  }
}

// The client openai from npm, unmodified, against the Responses of sluice serve.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { checkCalls, checkRetry, checkWeather, city, counting, destinations, failure, keeperKey, key, pixel, poorKey, refusing, url, uuid, weather, words } from "./support.mjs";

const tools = ["a", "b"].map((name) => ({ type: "function", name, description: "the weather of a city", parameters: city, strict: false }));

function connect(options = {}) {
  const { sent, fetch } = counting();
  return { sent, client: new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, fetch, ...options }) };
}

const calls = (response) => response.output.filter((i) => i.type === "function_call").map((i) => [i.call_id, i.name, JSON.parse(i.arguments)]);

// bothWays asks for the same answer whole and as a stream that the client puts together.
async function bothWays(request) {
  const { client } = connect();
  const params = { input: "hello", ...request };
  const whole = await client.responses.create(params);
  const stream = client.responses.stream(params);
  const events = [];
  stream.on("event", (event) => events.push(event));
  const streamed = await stream.finalResponse();
  assert.equal(events[0].type, "response.created");
  assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
  const terminal = events.filter((event) => /^response\.(completed|incomplete|failed)$/.test(event.type));
  assert.deepEqual(terminal, [events.at(-1)]);
  assert.equal(events.at(-1).response.status, streamed.status);
  return { whole, streamed };
}

for (const to of destinations) {
  for (const model of [`${to}/plain`, `${to}/fails-over`]) {
    test(`${model}: the same answer whole and streamed`, async () => {
      const { whole, streamed } = await bothWays({ model });
      assert.equal(streamed.output_text, whole.output_text);
      for (const response of [whole, streamed]) {
        assert.equal(words(response.output_text), 8);
        assert.equal(response.status, "completed");
        assert.equal(response.usage.output_tokens, 8);
        assert.equal(response.usage.total_tokens, response.usage.input_tokens + 8);
        assert.equal(response.usage.input_tokens_details.cached_tokens, model.endsWith("plain") ? 0 : 3);
      }
      assert.match(whole._request_id, uuid);
    });
  }

  test(`${to}: one tool`, async () => {
    for (const response of Object.values(await bothWays({ model: `${to}/tool`, tools }))) checkCalls(calls(response), ["a"]);
  });

  test(`${to}: text and parallel tools`, async () => {
    for (const response of Object.values(await bothWays({ model: `${to}/tools`, tools }))) {
      assert.match(response.output_text, /^let me look/);
      checkCalls(calls(response), ["a", "b"]);
    }
  });

  test(`${to}: the results of tools go back, an image among them`, async () => {
    const { client } = connect();
    const { output } = await client.responses.create({ model: `${to}/tools`, input: "hello", tools });
    const image = { type: "input_image", image_url: `data:image/png;base64,${pixel}`, detail: "auto" };
    const results = output.filter((i) => i.type === "function_call").map((item, i) => ({
      type: "function_call_output", call_id: item.call_id, output: i ? [{ type: "input_text", text: "this" }, image] : "sunny",
    }));
    const input = [{ role: "user", content: "hello" }, ...output, ...results];
    const answer = await client.responses.create({ model: `${to}/plain`, input, tools });
    assert.match(answer.output_text, /images=1 tools=2/);
  });

  test(`${to}: structured output, parsed by the client`, async () => {
    const { client } = connect();
    const format = { type: "json_schema", name: "weather", strict: true, schema: weather };
    const request = { model: `${to}/obeys`, input: "hello", text: { format } };
    checkWeather(JSON.parse((await client.responses.parse(request)).output_text));
    checkWeather(JSON.parse((await client.responses.stream(request).finalResponse()).output_text));
  });

  test(`${to}: an image`, async () => {
    const { client } = connect();
    const content = [{ type: "input_text", text: "what is it?" }, { type: "input_image", image_url: `data:image/png;base64,${pixel}`, detail: "auto" }];
    const answer = await client.responses.create({ model: `${to}/plain`, input: [{ role: "user", content }] });
    assert.match(answer.output_text, /images=1/);
  });

  test(`${to}: reasoning, and back again`, async () => {
    const asked = { model: `${to}/thinks`, reasoning: { effort: "low", summary: "auto" }, include: ["reasoning.encrypted_content"], store: false };
    const { whole, streamed } = await bothWays(asked);
    for (const response of [whole, streamed]) {
      const [first, second] = response.output;
      assert.equal(first.type, "reasoning");
      assert.equal(second.type, "message");
      assert.equal(response.usage.output_tokens, 12);
      if (to === "openai-responses") assert.ok(first.encrypted_content);
    }
    assert.deepEqual(streamed.output[0].summary, whole.output[0].summary);
    const { client } = connect();
    const input = [{ role: "user", content: "hello" }, ...streamed.output, { role: "user", content: "and?" }];
    const answer = await client.responses.create({ ...asked, input });
    assert.match(answer.output_text, /messages=[34]/);
  });

  test(`${to}: an answer that the limit of tokens cut is incomplete`, async () => {
    for (const response of Object.values(await bothWays({ model: `${to}/long`, max_output_tokens: 20 }))) {
      assert.equal(response.status, "incomplete");
      assert.equal(response.incomplete_details.reason, "max_output_tokens");
      assert.equal(response.usage.output_tokens, 20);
    }
  });

  test(`${to}: an answer that a filter cut is incomplete`, async () => {
    for (const response of Object.values(await bothWays({ model: `${to}/filtered` }))) {
      assert.equal(response.status, "incomplete");
      assert.equal(response.incomplete_details.reason, "content_filter");
    }
  });

  if (refusing.includes(to)) test(`${to}: a refusal is content of its own, or a filter's`, async () => {
    for (const response of Object.values(await bothWays({ model: `${to}/refuses` }))) {
      const parts = response.output.flatMap((item) => item.content).map((part) => part.type);
      assert.ok(parts.includes("refusal") || response.incomplete_details?.reason === "content_filter", JSON.stringify(response));
    }
  });

  test(`${to}: a throttle says when to come back`, async () => {
    const { client } = connect();
    const error = await failure(client.responses.create({ model: `${to}/busy`, input: "hello" }));
    assert.ok(error instanceof OpenAI.RateLimitError, String(error));
    checkRetry((name) => error.headers.get(name));
  });

  test(`${to}: a walk that failed is an error that may be retried`, async () => {
    const { client } = connect();
    const error = await failure(client.responses.create({ model: `${to}/overloaded`, input: "hello" }));
    assert.ok(error instanceof OpenAI.InternalServerError, String(error));
    assert.equal(error.code, "upstream_exhausted");
    assert.notEqual(error.headers.get("x-should-retry"), "false");
  });

  test(`${to}: a stream that breaks fails, and is never a short answer (S3)`, async () => {
    const { client } = connect();
    let text = "", last;
    for await (const event of await client.responses.create({ model: `${to}/breaks`, input: "hello", stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
      last = event;
    }
    assert.notEqual(text, "");
    assert.equal(last.type, "response.failed");
    assert.equal(last.response.status, "failed");
    assert.ok(last.response.error.message);
  });

  test(`${to}: a stream can be left (S7)`, async () => {
    const { client } = connect();
    const stream = await client.responses.create({ model: `${to}/stalls`, input: "hello", stream: true });
    for await (const event of stream) if (event.type === "response.output_text.delta") break; // leaving the loop aborts
    assert.ok(stream.controller.signal.aborted);
  });
}

for (const to of destinations) test(`${to}: a kept answer is continued, read and deleted (K6)`, async () => {
  const { client } = connect({ apiKey: keeperKey });
  const first = await client.responses.create({ model: `${to}/plain`, input: "hello" });
  const second = await client.responses.create({ model: `${to}/plain`, input: "and?", previous_response_id: first.id });
  assert.match(second.output_text, /messages=3/);
  assert.deepEqual((await client.responses.retrieve(first.id)).output, first.output);
  await client.responses.delete(first.id);
  await assert.rejects(client.responses.retrieve(first.id), OpenAI.NotFoundError);
});

test("an answer that nobody keeps is not found", async () => {
  const { client } = connect();
  const { id } = await client.responses.create({ model: "openai-responses/plain", input: "hello", store: false });
  await assert.rejects(client.responses.retrieve(id), OpenAI.NotFoundError);
  await assert.rejects(client.responses.delete(id), OpenAI.NotFoundError);
});

// Faults of the caller: the client's own class for each, and no retry although the
// client would.
for (const [name, options, request, kind, code] of [
  ["an unknown key", { apiKey: "sk-sluice-nobody" }, {}, OpenAI.AuthenticationError, "invalid_api_key"],
  ["an unknown model", {}, { model: "nothing" }, OpenAI.NotFoundError, "model_not_found"],
  ["a request that is none", {}, { input: 7 }, OpenAI.BadRequestError, "invalid_request"],
  ["no money left", { apiKey: poorKey }, {}, OpenAI.RateLimitError, "insufficient_quota"],
]) {
  for (const stream of [false, true]) {
    test(`${name} is ${kind.name} and not retried${stream ? ", streamed" : ""}`, async () => {
      const { client, sent } = connect({ maxRetries: 2, ...options });
      const error = await failure(client.responses.create({ model: "openai-responses/plain", input: "hello", stream, ...request }));
      assert.ok(error instanceof kind, String(error));
      assert.equal(error.code, code);
      assert.match(error.requestID, uuid);
      assert.equal(error.requestID, error.headers.get("request-id"));
      assert.equal(sent.requests, 1);
    });
  }
}

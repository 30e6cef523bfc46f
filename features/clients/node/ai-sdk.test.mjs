// The Vercel AI SDK (ai with @ai-sdk/openai and @ai-sdk/anthropic), unmodified, against
// sluice serve: each of its three dialects over every protocol of a provider.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, Output, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { checkCalls, checkRetry, checkWeather, city, counting, destinations, failure, keeperKey, key, pixel, poorKey, url, weather, words } from "./support.mjs";

// dialects are the ways this client speaks: each makes a model, and says what it needs
// to ask for reasoning.
const dialects = {
  chat: {
    model: (name, options) => createOpenAI({ baseURL: `${url}/v1`, apiKey: key, ...options }).chat(name),
  },
  responses: {
    model: (name, options) => createOpenAI({ baseURL: `${url}/v1`, apiKey: key, ...options }).responses(name),
    thinks: { openai: { reasoningEffort: "low", reasoningSummary: "auto", forceReasoning: true, store: false, include: ["reasoning.encrypted_content"] } },
  },
  messages: {
    model: (name, options) => createAnthropic({ baseURL: `${url}/anthropic/v1`, apiKey: key, ...options })(name),
    thinks: { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } },
  },
};

const lookUp = (execute) => tool({ description: "the weather of a city", inputSchema: jsonSchema(city), execute });
const tools = { a: lookUp(), b: lookUp() };

// once keeps the SDK's own retries and warnings out.
const once = { maxRetries: 0, maxOutputTokens: 2000 };
globalThis.AI_SDK_LOG_WARNINGS = false;

// bothWays asks for the same answer whole and streamed.
async function bothWays(request) {
  const whole = await generateText({ ...once, prompt: "hello", ...request });
  const stream = streamText({ ...once, prompt: "hello", ...request, onError: () => {} });
  const kinds = [];
  for await (const part of stream.fullStream) kinds.push(part.type);
  assert.equal(kinds.filter((kind) => kind === "start-step").length, 1, kinds.join()); // one start, whatever failed behind it
  assert.equal(kinds.at(-1), "finish", kinds.join());
  const streamed = {};
  for (const field of ["text", "toolCalls", "usage", "finishReason", "reasoningText", "response"]) streamed[field] = await stream[field];
  return [whole, streamed];
}

const calls = (result) => result.toolCalls.map((call) => [call.toolCallId, call.toolName, call.input]);

for (const [dialect, { model: speak, thinks }] of Object.entries(dialects)) {
  for (const to of destinations) {
    const called = (behaviour, options) => speak(`${to}/${behaviour}`, options);
    const test_ = (name, run) => test(`${dialect} over ${to}: ${name}`, run);

    for (const behaviour of ["plain", "fails-over"]) {
      test_(`${behaviour}, the same answer whole and streamed`, async () => {
        const [whole, streamed] = await bothWays({ model: called(behaviour) });
        assert.equal(streamed.text, whole.text);
        for (const result of [whole, streamed]) {
          assert.equal(words(result.text), 8);
          assert.equal(result.finishReason, "stop");
          assert.equal(result.usage.outputTokens, 8);
          assert.ok(result.usage.inputTokens > 3, JSON.stringify(result.usage));
          assert.equal(result.usage.cachedInputTokens ?? 0, behaviour === "plain" ? 0 : 3);
        }
      });
    }

    test_("one tool", async () => {
      for (const result of await bothWays({ model: called("tool"), tools })) {
        assert.equal(result.finishReason, "tool-calls");
        checkCalls(calls(result), ["a"]);
      }
    });

    test_("text and parallel tools", async () => {
      for (const result of await bothWays({ model: called("tools"), tools })) {
        assert.equal(result.finishReason, "tool-calls");
        assert.match(result.text, /^let me look/);
        checkCalls(calls(result), ["a", "b"]);
      }
    });

    // This client takes Responses for stored and sends them back by their ids, unless it
    // is told otherwise: both work where answers are kept.
    for (const store of dialect === "responses" ? [false, true] : [undefined]) test_(`two steps: a tool runs here and its result goes back${store ? ", by reference" : ""}`, async () => {
      const asked = [];
      const steps = {
        model: called("marked", { apiKey: store ? keeperKey : key }), prompt: 'look it up [tool a {"city":"Bern"}]', stopWhen: stepCountIs(3),
        providerOptions: { openai: { store } },
        tools: { a: lookUp((input) => (asked.push(input.city), "[say it is sunny]")) },
      };
      const whole = await generateText({ ...once, ...steps });
      assert.equal(whole.text, "it is sunny");
      assert.equal(await streamText({ ...once, ...steps }).text, "it is sunny");
      assert.deepEqual(asked, ["Bern", "Bern"]);
      assert.equal(whole.steps.length, 2);
    });

    test_("structured output", async () => {
      const output = Output.object({ schema: jsonSchema(weather) });
      const { output: value } = await generateText({ ...once, model: called("obeys"), prompt: "hello", output });
      checkWeather(value);
      checkWeather(await streamText({ ...once, model: called("obeys"), prompt: "hello", output }).output);
    });

    test_("an image", async () => {
      const content = [{ type: "text", text: "what is it?" }, { type: "image", image: pixel, mediaType: "image/png" }];
      const { text } = await generateText({ ...once, model: called("plain"), messages: [{ role: "user", content }] });
      assert.match(text, /images=1/);
    });

    if (thinks) test_("reasoning, and back again", async () => {
      const request = { model: called("thinks"), providerOptions: thinks };
      const [whole, streamed] = await bothWays(request);
      for (const result of [whole, streamed]) {
        assert.equal(words(result.reasoningText), 4);
        assert.equal(words(result.text), 8);
        assert.equal(result.usage.outputTokens, 12);
      }
      const messages = [{ role: "user", content: "hello" }, ...streamed.response.messages, { role: "user", content: "and?" }];
      const { text } = await generateText({ ...once, ...request, messages });
      assert.match(text, /messages=[34]/);
    });

    test_("the limit of tokens", async () => {
      for (const result of await bothWays({ model: called("long"), maxOutputTokens: 20 })) assert.equal(result.finishReason, "length");
    });

    test_("a filter", async () => {
      for (const result of await bothWays({ model: called("filtered") })) assert.equal(result.finishReason, "content-filter");
    });

    test_("a throttle may be retried and says when", async () => {
      const error = await failure(generateText({ ...once, model: called("busy"), prompt: "hello" }));
      assert.ok(APICallError.isInstance(error), String(error));
      assert.equal(error.statusCode, 429);
      assert.ok(error.isRetryable);
      checkRetry((name) => error.responseHeaders[name]);
    });

    test_("a stream that breaks is an error, never a short answer (S3)", async () => {
      const errors = [];
      const stream = streamText({ ...once, model: called("breaks"), prompt: "hello", onError: ({ error }) => errors.push(error) });
      let text = "";
      for await (const delta of stream.textStream) text += delta;
      assert.notEqual(text, "");
      assert.equal(errors.length, 1);
      assert.notEqual(await stream.finishReason.catch(() => "error"), "stop");
    });

    test_("a stream can be left (S7)", async () => {
      const abort = new AbortController();
      const stream = streamText({ ...once, model: called("stalls"), prompt: "hello", abortSignal: abort.signal });
      let aborted = false;
      for await (const part of stream.fullStream) {
        if (part.type === "text-delta") abort.abort();
        aborted ||= part.type === "abort";
      }
      assert.ok(aborted);
    });
  }

  // Faults of the caller: the status and text of ours, and no retry although the client
  // would.
  for (const [name, options, model, status, retryable] of [
    ["an unknown key", { apiKey: "sk-sluice-nobody" }, "plain", 401, false],
    ["an unknown model", {}, "nothing", 404, false],
  ]) {
    test(`${dialect}: ${name} is ${status} and not retried`, async () => {
      const { sent, fetch } = counting();
      const error = await failure(generateText({ model: speak(model, { fetch, ...options }), prompt: "hello", maxRetries: 2 }));
      assert.ok(APICallError.isInstance(error), String(error));
      assert.equal(error.statusCode, status);
      assert.equal(error.isRetryable, retryable);
      assert.ok(error.message && error.message !== "[object Object]", error.message);
      assert.equal(sent.requests, 1);
    });
  }

  test(`${dialect}: no money left is 429 with its reason`, async () => {
    const error = await failure(generateText({ ...once, model: speak("plain", { apiKey: poorKey }), prompt: "hello" }));
    assert.equal(error.statusCode, 429);
    assert.match(error.responseBody, /insufficient_quota/);
    assert.equal(error.responseHeaders["x-should-retry"], "false"); // this client does not read it
  });
}

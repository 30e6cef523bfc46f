// LangChain's @langchain/openai, unmodified, against sluice serve: Chat Completions and
// Responses over every protocol of a provider.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { checkCalls, checkRetry, checkWeather, city, counting, destinations, failure, key, pixel, poorKey, refusing, url, weather, words } from "./support.mjs";

const tools = ["a", "b"].map((name) => ({ type: "function", function: { name, description: "the weather of a city", parameters: city } }));

function connect(model, { apiKey = key, fetch, ...options } = {}) {
  return new ChatOpenAI({ model, apiKey, maxRetries: 0, configuration: { baseURL: `${url}/v1`, fetch }, ...options });
}

// bothWays asks for the same answer whole and as chunks that the client merges.
async function bothWays(runnable, input = "hello") {
  const whole = await runnable.invoke(input);
  let streamed;
  for await (const chunk of await runnable.stream(input)) streamed = streamed ? streamed.concat(chunk) : chunk;
  return [whole, streamed];
}

const calls = (message) => message.tool_calls.map((call) => [call.id, call.name, call.args]);

for (const [dialect, useResponsesApi] of [["chat", false], ["responses", true]]) {
  for (const to of destinations) {
    const called = (behaviour, options) => connect(`${to}/${behaviour}`, { useResponsesApi, ...options });
    const test_ = (name, run) => test(`${dialect} over ${to}: ${name}`, run);

    for (const behaviour of ["plain", "fails-over"]) {
      test_(`${behaviour}, the same answer whole and streamed`, async () => {
        const [whole, streamed] = await bothWays(called(behaviour));
        assert.equal(streamed.text, whole.text);
        for (const message of [whole, streamed]) {
          assert.equal(words(message.text), 8);
          assert.equal(message.usage_metadata.output_tokens, 8);
          assert.equal(message.usage_metadata.total_tokens, message.usage_metadata.input_tokens + 8);
          assert.equal(message.usage_metadata.input_token_details?.cache_read ?? 0, behaviour === "plain" ? 0 : 3);
        }
      });
    }

    test_("one tool", async () => {
      for (const message of await bothWays(called("tool").bindTools(tools))) checkCalls(calls(message), ["a"]);
    });

    test_("text and parallel tools", async () => {
      for (const message of await bothWays(called("tools").bindTools(tools))) {
        assert.match(message.text, /^let me look/);
        checkCalls(calls(message), ["a", "b"]);
      }
    });

    test_("the results of tools go back", async () => {
      const model = called("marked").bindTools(tools);
      const asked = new HumanMessage('look it up [tool a {"city":"Bern"}]');
      for (const message of await bothWays(model, [asked])) {
        const [call] = message.tool_calls;
        assert.deepEqual(call.args, { city: "Bern" });
        const result = new ToolMessage({ tool_call_id: call.id, content: "[say it is sunny]" });
        assert.equal((await model.invoke([asked, message, result])).text, "it is sunny");
      }
    });

    test_("structured output", async () => {
      checkWeather(await called("obeys").withStructuredOutput({ title: "weather", ...weather }, { method: "jsonSchema", strict: true }).invoke("hello"));
    });

    test_("an image", async () => {
      const content = [{ type: "text", text: "what is it?" }, { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } }];
      assert.match((await called("plain").invoke([new HumanMessage({ content })])).text, /images=1/);
    });

    test_("the limit of tokens", async () => {
      const [whole, streamed] = await bothWays(called("long", { maxTokens: 20 }));
      for (const { response_metadata: told } of [whole, streamed]) {
        if (useResponsesApi) assert.equal(told.incomplete_details.reason, "max_output_tokens");
        else assert.equal(told.finish_reason, "length");
      }
    });

    if (useResponsesApi) test_("reasoning", async () => {
      const model = called("thinks", { reasoning: { effort: "low", summary: "auto" }, zdrEnabled: true });
      for (const message of await bothWays(model)) {
        assert.ok(message.additional_kwargs.reasoning?.summary.length, JSON.stringify(message.additional_kwargs));
        assert.equal(message.usage_metadata.output_tokens, 12);
        const answer = await model.invoke([new HumanMessage("hello"), message, new HumanMessage("and?")]);
        assert.match(answer.text, /messages=[34]/);
      }
    });

    // Over Chat Completions this client does not read refusals.
    if (useResponsesApi && refusing.includes(to)) test_("a refusal", async () => {
      const [whole] = await bothWays(called("refuses"));
      assert.ok(whole.additional_kwargs.refusal || whole.response_metadata.incomplete_details?.reason === "content_filter", JSON.stringify(whole));
    });

    test_("a throttle says when to come back", async () => {
      const error = await failure(called("busy").invoke("hello"));
      assert.equal(error.status, 429);
      checkRetry((name) => error.headers.get(name));
    });

    test_("a stream that breaks is an error, never a short answer (S3)", async () => {
      let heard;
      const read = async () => {
        for await (const chunk of await called("breaks").stream("hello")) heard = heard ? heard.concat(chunk) : chunk;
      };
      if (!useResponsesApi) await assert.rejects(read());
      else {
        // This client does not read response.failed; what it makes of the stream is at
        // least not said to be complete.
        await read();
        assert.notEqual(heard.response_metadata.status, "completed");
        assert.equal(heard.usage_metadata, undefined);
      }
      assert.notEqual(heard.text, "");
    });

    test_("a stream can be left (S7)", async () => {
      const abort = new AbortController();
      const read = async () => {
        for await (const chunk of await called("stalls").stream("hello", { signal: abort.signal })) if (chunk.text) abort.abort();
      };
      await assert.rejects(read());
    });
  }

  for (const [name, options, model, status] of [
    ["an unknown key", { apiKey: "sk-sluice-nobody" }, "plain", 401],
    ["an unknown model", {}, "nothing", 404],
    ["no money left", { apiKey: poorKey }, "plain", 429],
  ]) {
    test(`${dialect}: ${name} is ${status} and not retried`, async () => {
      const { sent, fetch } = counting();
      const error = await failure(connect(model, { useResponsesApi, fetch, maxRetries: 2, ...options }).invoke("hello"));
      assert.equal(error.status, status, String(error));
      assert.equal(sent.requests, 1);
    });
  }
}

test("embeddings pass through", async () => {
  const embeddings = new OpenAIEmbeddings({ model: "embeds", encodingFormat: "float", apiKey: key, maxRetries: 0, configuration: { baseURL: `${url}/v1` } });
  assert.deepEqual(await embeddings.embedQuery("hello"), [0.25, -0.5, 0.125]);
});

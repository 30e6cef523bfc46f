Feature: A pool is one model
  Before an operator certifies that several deployments are one model, each of them is
  asked the same few synthetic requests. What they answer is compared by its structure:
  kinds of output, tool calls, stop reasons, token counts.

  @N24 @N15
  Scenario Outline: Deployments that answer alike pass, others are told apart
    Given a pool of two deployments over "<first>" and "<second>"
    When the second answers "<answers>"
    And the pool is checked
    Then the check ends as "<result>"
    And each deployment was called 6 times

    Examples: what is asked: text, a structure, one tool, two tools, length, stop sequence
      | first     | second | answers                           | result |
      | openai    | openai | ok,ok,ok,tools:2,words:64,ok      | passed |
      | anthropic | gemini | ok,ok,ok,tools:2,words:64,ok      | passed |
      | openai    | openai | ok,ok,ok,tools:1,words:64,ok      | failed |
      | openai    | openai | ok,off-schema,ok,tools:2,words:64,ok  | failed |
      | openai    | openai | status:500,ok,ok,tools:2,words:64,ok | failed |

  @N24 @Q1
  Scenario: No call is made that could pass the ceiling
    Given a pool of two deployments over "openai" and "openai"
    When the pool is checked for at most 0.000001 USD
    Then the check ends as "blocked"
    And each deployment was called 0 times

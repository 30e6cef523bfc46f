Feature: Limits
  Requests, tokens and money, by organization, team, identity, key, model, pool and
  deployment. All limits are checked before any is taken, in the commit that makes the
  reservation.

  Every request here is planned with 1,000 input and 100 output tokens; a route costs 3
  USD a million input and 15 USD a million output, so a reservation is 4,500,000 nano-USD.

  Background:
    Given the chain
      | route | model |
      | a     | fable |
      | b     | fable |

  @R1 @A9
  Scenario: A minute of requests is the trailing sixty seconds, exactly
    Given the limits
      | scope        | limit      | per    |
      | organization | 2 requests | minute |
    When the calls end
      | route | endings |
      | a     | ok      |
    And 1s go by
    And the calls end
      | route | endings |
      | a     | ok      |
    And 1s go by
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused rate_limit_exceeded
      """
    And nobody was called
    And the refusal is "organization: 2 of 2 requests"
    And the answer is "rate_limit_exceeded" with status 429
    When it is 59.999999s after the first call
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused rate_limit_exceeded
      """
    When it is 60s after the first call
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      first a k1
      completed
      """

  @R1
  Scenario: Each fallback counts, a skip does not
    Given the chain
      | route | capabilities |
      | a     | chat         |
      | b     |              |
      | c     |              |
    And the request needs "tools"
    And the limits
      | scope        | limit      | per    |
      | organization | 2 requests | minute |
    When the calls end
      | route | endings            |
      | b     | timeout_first_byte |
      | c     | ok                 |
    Then the moves are
      """
      skip a capability_missing
      first b k1
      failover c k1
      completed
      """
    And the budget "organization/requests/minute" stands at 2

  @R1
  Scenario: An organization's own key takes nothing of the limits
    Given the chain
      | route | owner     |
      | own   | workspace |
    And the limits
      | scope        | limit     | per    |
      | organization | 1 request | minute |
      | organization | 1 tokens  | minute |
      | organization | 0.01 USD  | day    |
    When the calls end
      | route | endings |
      | own   | ok      |
    And the calls end
      | route | endings |
      | own   | ok      |
    Then the moves are
      """
      first own k1
      completed
      """
    And the budget "organization/requests/minute" stands at 0
    And the budget "organization/usd/day" stands at 0

  @R2 @R4
  Scenario: The request that crosses a token limit is served, the next is not
    Given the limits
      | scope        | limit      | per    |
      | organization | 900 tokens | minute |
    When the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      first a k1
      completed
      """
    And the budget "organization/tokens/minute" stands at 950
    When 30s go by
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused rate_limit_exceeded
      """
    And the refusal is "organization: 950 of 900 tokens"
    When 1m go by
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      first a k1
      completed
      """

  @R2 @W5
  Scenario: A total of tokens is a quota, which no waiting gives back
    Given the limits
      | scope        | limit      | per   |
      | organization | 900 tokens | total |
    When the calls end
      | route | endings |
      | a     | ok      |
    And 24h go by
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused insufficient_quota
      """
    And the answer is "insufficient_quota" with status 429

  @R8 @A9 @M13
  Scenario Outline: Every scope inside the request stops it
    Given the limits
      | scope   | limit      | per    |
      | <scope> | 1 requests | minute |
    When the calls end
      | route | endings |
      | a     | ok      |
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused rate_limit_exceeded
      """
    And the refusal is "<scope>: 1 of 1 requests"

    Examples:
      | scope        |
      | organization |
      | team         |
      | identity     |
      | key          |
      | model        |

  @M13 @R8
  Scenario Outline: A deployment's own limit moves on to the next
    Given the limits
      | scope      | of | limit   | per   |
      | deployment | a  | <limit> | <per> |
    When the calls end
      | route | endings |
      | a     | ok      |
      | b     | ok      |
    And the calls end
      | route | endings |
      | a     | ok      |
      | b     | ok      |
    Then the moves are
      """
      skip a <reason>
      first b k1
      completed
      """
    And the fallback depth is 0

    Examples:
      | limit      | per    | reason            |
      | 1 requests | minute | rate_limit        |
      | 900 tokens | hour   | rate_limit        |
      | 0.005 USD  | day    | deployment_budget |

  @M13
  Scenario: When every deployment's limit is used up, the last one speaks
    Given the limits
      | scope      | limit     | per |
      | deployment | 0.005 USD | day |
    When the calls end
      | route | endings |
      | a     | ok      |
    And the calls end
      | route | endings |
      | b     | ok      |
    And the calls end
      | route | endings |
      | b     | ok      |
    Then the moves are
      """
      refused insufficient_quota
      """
    And the refused skips are "a deployment_budget, b deployment_budget"
    And the refusal is "deployment: 3450000 of 5000000 nanousd"

  @R10
  Scenario: A refused request uses up none of its limits
    Given the limits
      | scope        | limit       | per    |
      | organization | 10 requests | minute |
      | organization | 0.001 USD   | day    |
    When the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused insufficient_quota
      """
    And the budget "organization/requests/minute" stands at 0
    And the budget "organization/usd/day" stands at 0

  @R8
  Scenario: A key's limit only narrows its organization's
    Given the limits
      | scope        | limit      | per    |
      | organization | 1 requests | minute |
      | key          | 5 requests | minute |
    When the calls end
      | route | endings |
      | a     | ok      |
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      refused rate_limit_exceeded
      """
    And the refusal is "organization: 1 of 1 requests"

  @R9
  Scenario: Observation refuses nothing and tells what it would have refused
    Given the limits
      | scope        | limit      | per    | enforcement |
      | organization | 1 requests | minute | observe     |
    When the calls end
      | route | endings |
      | a     | ok      |
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      first a k1
      observed organization/requests/minute: 2 of 1
      completed
      """

  @M8
  Scenario: A request for one model that another serves obeys the limits of both
    Given the chain
      | route | model |
      | a     | fable |
      | z     | other |
    And the limits
      | scope      | of    | limit    | per |
      | model      | fable | 1.00 USD | day |
      | model      | other | 1.00 USD | day |
      | deployment | z     | 1.00 USD | day |
      | deployment | a     | 1.00 USD | day |
    When the calls end
      | route | endings        |
      | a     | provider_quota |
      | z     | ok             |
    Then the moves are
      """
      first a k1
      model_change z k1
      completed
      """
    And the budget "model:fable/usd/day" stands at 3450000
    And the budget "model:other/usd/day" stands at 3450000
    And the budget "deployment:z/usd/day" stands at 3450000
    And the budget "deployment:a/usd/day" stands at 0

  @M8
  Scenario: A budget that applies twice is counted once
    Given the limits
      | scope | limit    | per |
      | model | 1.00 USD | day |
    When the calls end
      | route | endings |
      | a     | ok      |
    Then the budget "model/usd/day" stands at 3450000

  @M8 @M13
  Scenario: The budget of the model that was asked for stops a walk on another
    Given the chain
      | route | model |
      | a     | fable |
      | z     | other |
    And the limits
      | scope | of    | limit      | per |
      | model | fable | 0.0005 USD | day |
    When the calls end
      | route | endings |
      | z     | ok      |
    Then the moves are
      """
      refused insufficient_quota
      """
    And the refusal is "model: 0 of 500000 nanousd"
    And nobody was called

  @M9
  Scenario Outline: A walk may begin on another model if the one asked for could have been paid
    Given the chain
      | route | model | price | keys   |
      | a     | fable | 300   | <keys> |
      | z     | other | 1     | k1     |
    And the limits
      | scope        | limit   | per |
      | organization | <limit> | day |
    When the calls end
      | route | endings |
      | a     | ok      |
      | z     | ok      |
    Then the moves in a line are "<moves>"
    And the budget "organization/usd/day" stands at <used>

    Examples: a reservation on a costs 0.33 USD, on z 0.0011 USD
      | keys    | limit    | moves                                            | used   |
      | missing | 0.33 USD | skip a credential_missing, first z k1, completed | 950000 |
      | missing | 0.32 USD | refused insufficient_quota                       | 0      |

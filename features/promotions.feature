Feature: Promotions give tokens away

  The operator gives an organization input, output or both of some models for nothing,
  up to allowances. What the provider asks stays what it is: the operator pays it.
  Amounts are in nano-USD: input costs 3,000 a token, cached input 300, output 15,000.

  Background:
    Given the models and prices
      """
      version: 1
      providers:
        - {id: east, protocol: openai, base_url: "https://east.example.test/v1", keys: [{id: k1, env: EAST}]}
        - {id: west, protocol: openai, base_url: "https://west.example.test/v1", keys: [{id: k1, env: WEST}]}
      deployments:
        - {id: fable@east, provider: east, upstream_model: f, prices: {input: "3", output: "15", cache_read: "0.3"}}
        - {id: fable@west, provider: west, upstream_model: f, prices: {input: "3", output: "15", cache_read: "0.3"}}
        - {id: mini@east, provider: east, upstream_model: m, prices: {input: "1", output: "2"}}
      models:
        - slug: fable
          exact_model: fable
          equivalence: {certified_by: ops, on: "2026-11-01", evidence: "sha256:00"}
          chain: [{deployment: fable@east}, {deployment: fable@west}, {model: mini}]
        - {slug: mini, exact_model: mini, chain: [{deployment: mini@east}]}
      """

  @M10 @M7 @M2
  Scenario: What is free is not charged, and cached input has its discount
    Given acme has
      """
      promotions: [{id: launch, models: [fable], free_input_tokens: {overall: {per_day: 5000}}}]
      """
    When "fable" is asked with 1000 in and at most 100 out, and uses 900 in, 300 cached, 50 out
    Then the attempts are
      """
      fable@east holds 1800000, launch pays input
      """
    And the amounts are 2640000 list, 840000 charge, 1800000 subsidy, 2640000 provider cost
    And the allowances hold
      | counter                                         | held | given |
      | launch/input/overall/tokens/day/2026-11-29      | 0    | 600   |

  @M10
  Scenario: Cached input is free where the promotion says so, and counts
    Given acme has
      """
      promotions: [{id: launch, models: [fable], free_input_tokens: {overall: {per_day: 5000}}, cached_input_free: true}]
      """
    When "fable" is asked with 1000 in and at most 100 out, and uses 900 in, 300 cached, 50 out
    Then the attempts are
      """
      fable@east holds 1500000, launch pays input and cached input
      """
    And the amounts are 2640000 list, 750000 charge, 1890000 subsidy, 2640000 provider cost
    And the allowances hold
      | counter                                         | held | given |
      | launch/input/overall/tokens/day/2026-11-29      | 0    | 900   |

  @M10 @M2
  Scenario: Input and output have allowances of their own, per model and overall
    Given acme has
      """
      promotions:
        - id: launch
          models: [fable, mini]
          free_input_tokens: {per_model: {per_hour: 1500}, overall: {total: 9000}}
          free_output_tokens: {per_model: {per_day: 100}, overall: {per_hour: 1000}}
      """
    When "fable" is asked with 1000 in and at most 100 out, and uses 900 in, 60 out
    Then the attempts are
      """
      fable@east holds 300000, launch pays input and output
      """
    And the amounts are 3600000 list, 0 charge, 3600000 subsidy, 3600000 provider cost
    # 900 + 1000 is more than an hour's 1500 of input, 60 + 100 more than a day's 100 of output.
    When "fable" is asked with 1000 in and at most 100 out, and uses 900 in, 60 out
    Then the attempts are
      """
      fable@east holds 4500000
      """
    And the amounts are 3600000 list, 3600000 charge, 0 subsidy, 3600000 provider cost
    # Another model has its own, and the same overall.
    When "mini" is asked with 1000 in and at most 100 out, and uses 900 in, 60 out
    Then the attempts are
      """
      mini@east holds 1000000, launch pays input and output
      """
    And the allowances hold
      | counter                                              | held | given |
      | launch/input/model/fable/tokens/hour/2026-11-29T12   | 0    | 900   |
      | launch/input/model/mini/tokens/hour/2026-11-29T12    | 0    | 900   |
      | launch/input/overall/tokens/total/total              | 0    | 1800  |
      | launch/output/model/fable/tokens/day/2026-11-29      | 0    | 60    |
      | launch/output/model/mini/tokens/day/2026-11-29       | 0    | 60    |
      | launch/output/overall/tokens/hour/2026-11-29T12      | 0    | 120   |

  @M10
  Scenario: One side that is used up leaves the other one free
    Given acme has
      """
      promotions:
        - {id: launch, models: [fable], free_input_tokens: {overall: {total: 9000}}, free_output_tokens: {overall: {total: 99}}}
      """
    When "fable" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then the attempts are
      """
      fable@east holds 1800000, launch pays input
      """
    And the amounts are 3450000 list, 750000 charge, 2700000 subsidy, 3450000 provider cost

  @M10 @M2
  Scenario: Each of several answers may be as long as the ceiling
    Given acme has
      """
      promotions: [{id: launch, models: [fable], free_output_tokens: {overall: {total: 299}}}]
      """
    And each request asks for 3 answers
    When "fable" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then the attempts are
      """
      fable@east holds 7500000
      """

  @M10
  Scenario: Hours and days are those of UTC, and the total has none
    Given acme has
      """
      promotions:
        - id: launch
          models: [fable]
          starts: "2026-11-01"
          ends: "2026-11-30T00:30:00Z"
          free_input_tokens: {overall: {per_hour: 1000, per_day: 2000, total: 9000}}
      """
    And it is "2026-11-29T22:59:59Z"
    When "fable" is asked with 1000 in and at most 100 out, and uses 1000 in, 10 out
    Then the amounts are 3150000 list, 150000 charge, 3000000 subsidy, 3150000 provider cost
    When "fable" is asked with 1000 in and at most 100 out, and uses 1000 in, 10 out
    Then the amounts are 3150000 list, 3150000 charge, 0 subsidy, 3150000 provider cost
    Given it is "2026-11-29T23:00:00Z"
    When "fable" is asked with 1000 in and at most 100 out, and uses 1000 in, 10 out
    Then the amounts are 3150000 list, 150000 charge, 3000000 subsidy, 3150000 provider cost
    # The day's 2000 are given, whatever the hour has left.
    Given it is "2026-11-30T00:00:00+00:00"
    When "fable" is asked with 1000 in and at most 100 out, and uses 1000 in, 10 out
    Then the amounts are 3150000 list, 150000 charge, 3000000 subsidy, 3150000 provider cost
    And the allowances hold
      | counter                                            | held | given |
      | launch/input/overall/tokens/day/2026-11-29         | 0    | 2000  |
      | launch/input/overall/tokens/day/2026-11-30         | 0    | 1000  |
      | launch/input/overall/tokens/hour/2026-11-29T22     | 0    | 1000  |
      | launch/input/overall/tokens/hour/2026-11-29T23     | 0    | 1000  |
      | launch/input/overall/tokens/hour/2026-11-30T00     | 0    | 1000  |
      | launch/input/overall/tokens/total/total            | 0    | 3000  |
    Given it is "2026-11-30T00:30:00Z"
    When "fable" is asked with 1000 in and at most 100 out, and uses 1000 in, 10 out
    Then the amounts are 3150000 list, 3150000 charge, 0 subsidy, 3150000 provider cost

  @M10
  Scenario: A limit in money counts what the tokens would have cost
    Given acme has
      """
      promotions: [{id: launch, models: [fable], free_output_tokens: {overall: {per_day_usd: "0.002"}}}]
      """
    When "fable" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then the amounts are 3450000 list, 2700000 charge, 750000 subsidy, 3450000 provider cost
    # 750,000 given and 1,500,000 asked for are more than 2,000,000.
    When "fable" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then the amounts are 3450000 list, 3450000 charge, 0 subsidy, 3450000 provider cost
    And the allowances hold
      | counter                                     | held | given  |
      | launch/output/overall/usd/day/2026-11-29    | 0    | 750000 |

  @M10 @M13 @A9 @Q1
  Scenario: A free request stops at its allowance and never spends credit
    Given acme has
      """
      promotions:
        - {id: launch, models: [fable], free_input_tokens: {overall: {per_hour: 2500}}, free_output_tokens: {overall: {total: 1000}}}
      budgets: [{scope: organization, limit_usd: "100", per: month}]
      """
    When "fable:free" is asked with 1000 in and at most 100 out, and uses 1000 in, 800 cached, 50 out
    Then the attempts are
      """
      fable@east holds 0, launch pays input, cached input and output
      """
    And the amounts are 1590000 list, 0 charge, 1590000 subsidy, 1590000 provider cost
    When "fable:free" is asked with 1000 in and at most 100 out, and uses 1000 in, 50 out
    And "fable:free" is asked with 501 in and at most 100 out, and uses 1000 in, 50 out
    Then it is refused as "insufficient_quota" by "promotion" with limit 2500, used 2000, until "2026-11-29T13:00:00Z"
    And nobody is called, and "insufficient_quota" is answered
    # What fits may still be served, and the same request under the plain name spends credit.
    When "fable:free" is asked with 500 in and at most 100 out, and uses 500 in, 50 out
    Then the amounts are 2250000 list, 0 charge, 2250000 subsidy, 2250000 provider cost
    When "fable" is asked with 501 in and at most 100 out, and uses 500 in, 50 out
    Then the amounts are 2250000 list, 1500000 charge, 750000 subsidy, 2250000 provider cost

  @M10
  Scenario Outline: A free name of what is never, or not altogether, free (<promotion>)
    Given acme has
      """
      promotions: [<promotion>]
      """
    When "fable:free" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then nobody is called, and "<answer>" is answered

    Examples:
      | promotion                                                                                                                         | answer             |
      | {id: x, models: [fable], free_input_tokens: {overall: {total: 99999}}}                                                            | insufficient_quota |
      | {id: x, models: [fable], ends: "2026-11-29", free_input_tokens: {overall: {total: 9999}}, free_output_tokens: {overall: {total: 9999}}} | insufficient_quota |
      | {id: x, models: [mini], free_input_tokens: {overall: {total: 9999}}, free_output_tokens: {overall: {total: 9999}}}                | insufficient_quota |
      |                                                                                                                                   | model_not_found    |

  @M10 @M8
  Scenario: A promotion of one model does not pay for another
    Given acme has
      """
      promotions:
        - {id: launch, models: [fable], free_input_tokens: {overall: {total: 9000}}, free_output_tokens: {overall: {total: 1000}}}
      """
    And every call of "fable@east" ends as "connect_error"
    And every call of "fable@west" ends as "connect_error"
    When "fable" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then the attempts are
      """
      fable@east holds 300000, launch pays input and output
      fable@east holds 300000, launch pays input and output
      fable@west holds 300000, launch pays input and output
      fable@west holds 300000, launch pays input and output
      mini@east holds 1200000
      """
    And the amounts are 1000000 list, 1000000 charge, 0 subsidy, 1000000 provider cost
    # What served nothing gave nothing away.
    And the allowances hold
      | counter | held | given |

  @M10 @M8
  Scenario: A free request goes to another model only where that is free too
    Given acme has
      """
      promotions:
        - {id: launch, models: [fable], free_input_tokens: {overall: {total: 9000}}, free_output_tokens: {overall: {total: 1000}}}
      """
    And every call of "fable@east" ends as "deployment_missing"
    And every call of "fable@west" ends as "deployment_missing"
    When "fable:free" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then the attempts are
      """
      fable@east holds 0, launch pays input, cached input and output
      fable@west holds 0, launch pays input, cached input and output
      skip rung 3 not_free
      """
    # One that has ended pays no more than none.
    Given acme has
      """
      promotions:
        - {id: launch, models: [fable], free_input_tokens: {overall: {total: 9000}}, free_output_tokens: {overall: {total: 1000}}}
        - {id: small, models: [mini], ends: "2026-11-29", free_input_tokens: {overall: {total: 9000}}, free_output_tokens: {overall: {total: 1000}}}
      """
    When "fable:free" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then the attempts are
      """
      fable@east holds 0, launch pays input, cached input and output
      fable@west holds 0, launch pays input, cached input and output
      skip rung 3 not_free
      """
    Given acme has
      """
      promotions:
        - {id: launch, models: [fable], free_input_tokens: {overall: {total: 9000}}, free_output_tokens: {overall: {total: 1000}}}
        - {id: small, models: [mini], free_input_tokens: {overall: {total: 9000}}, free_output_tokens: {overall: {total: 1000}}}
      """
    When "fable:free" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then the attempts are
      """
      fable@east holds 0, launch pays input, cached input and output
      fable@west holds 0, launch pays input, cached input and output
      mini@east holds 0, small pays input, cached input and output
      """
    And the allowances hold
      | counter                                 | held | given |
      | small/input/overall/tokens/total/total  | 0    | 900   |
      | small/output/overall/tokens/total/total | 0    | 50    |

  @M10 @M9
  Scenario: A free request that begins on another model must have been free on its own
    Given acme has
      """
      promotions:
        - {id: launch, models: [fable], free_input_tokens: {overall: {total: 1200}}, free_output_tokens: {overall: {total: 1000}}}
        - {id: small, models: [mini], free_input_tokens: {overall: {total: 9000}}, free_output_tokens: {overall: {total: 1000}}}
      """
    And the circuit of "fable@east" is open
    And the circuit of "fable@west" is open
    When "fable:free" is asked with 1201 in and at most 100 out, and uses 1100 in, 50 out
    Then it is refused as "insufficient_quota" by "promotion" with limit 1200, used 0, until ""
    And nobody is called, and "insufficient_quota" is answered
    When "fable:free" is asked with 1200 in and at most 100 out, and uses 1100 in, 50 out
    Then the attempts are
      """
      skip rung 0 breaker_open
      skip rung 1 breaker_open
      mini@east holds 0, small pays input, cached input and output
      """
    And the allowances hold
      | counter                                 | held | given |
      | small/input/overall/tokens/total/total  | 0    | 1100  |
      | small/output/overall/tokens/total/total | 0    | 50    |

  @M10 @M12
  Scenario: What is bought at a surcharge takes no promotion
    Given acme has
      """
      surcharge_fallback: true
      connections: [{id: own, provider: east, env: OWN}]
      chains: [{model: fable, chain: [{connection: own}, {deployment: fable@west}]}]
      promotions:
        - {id: launch, models: [fable], free_input_tokens: {overall: {total: 9000}}, free_output_tokens: {overall: {total: 1000}}}
      """
    And "fable" is offered at a surcharge of 5 percent
    And every call of "fable@east" ends as "deployment_missing"
    When "fable" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then the attempts are
      """
      fable@east holds 0
      fable@west holds 4725000
      """
    And the amounts are 3450000 list, 3622500 charge, 0 subsidy, 3450000 provider cost
    And the allowances hold
      | counter | held | given |

  @M10 @W6 @M7
  Scenario: An own key takes no promotion
    Given acme has
      """
      connections: [{id: own, provider: east, env: OWN}]
      chains: [{model: fable, chain: [{connection: own}]}]
      promotions:
        - {id: launch, models: [fable], free_input_tokens: {overall: {total: 9000}}, free_output_tokens: {overall: {total: 1000}}}
      """
    When "fable" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then the attempts are
      """
      fable@east holds 0
      """
    And the amounts are 3450000 list, 0 charge, 0 subsidy, 3450000 provider cost
    When "fable:free" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then nobody is called, and "insufficient_quota" is answered

  @M10 @M6 @D2
  Scenario: Usage that nobody knows keeps what was held for it
    Given acme has
      """
      promotions:
        - {id: launch, models: [fable], free_input_tokens: {overall: {total: 1500}}, free_output_tokens: {overall: {total: 1000}}}
      """
    When "fable:free" is asked with 1000 in and at most 100 out, and uses what nobody knows
    Then the amounts are 0 list, 0 charge, 0 subsidy, 0 provider cost
    And the allowances hold
      | counter                                  | held | given |
      | launch/input/overall/tokens/total/total  | 0    | 1000  |
      | launch/output/overall/tokens/total/total | 0    | 100   |
    When "fable:free" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then it is refused as "insufficient_quota" by "promotion" with limit 1500, used 1000, until ""

  @M10 @M16
  Scenario: An organization without money is still served what is free
    Given acme has
      """
      budgets: [{scope: organization, limit_usd: "0.000002", per: month}]
      promotions:
        - {id: launch, models: [fable], free_input_tokens: {overall: {total: 9000}}, free_output_tokens: {overall: {total: 1000}}}
      """
    # It uses more than was estimated, which is counted in full.
    When "mini" is asked with 0 in and at most 1 out, and uses 900 in, 50 out
    Then the amounts are 1000000 list, 1000000 charge, 0 subsidy, 1000000 provider cost
    When "fable:free" is asked with 1000 in and at most 100 out, and uses 900 in, 50 out
    Then the amounts are 3450000 list, 0 charge, 3450000 subsidy, 3450000 provider cost
    When "fable" is asked with 1000 in and at most 1001 out, and uses 900 in, 50 out
    Then it is refused as "insufficient_quota" by "organization" with limit 2000, used 1000000, until "2026-12-01T00:00:00Z"

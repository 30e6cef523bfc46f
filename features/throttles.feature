Feature: What a throttle does

  A provider's "not now" is returned, waited out or taken elsewhere, by the model's
  policy and by how much of the prompt is cached there.

  @T1 @T2 @T3 @T4 @T12
  Scenario Outline: Without a schedule: <mode>, threshold <threshold>, <cached> cached
    Given the chain
      | route |
      | a     |
      | b     |
    And the policy is <mode> with threshold <threshold>
    And <cached> of the prompt is cached on "a"
    When the calls end
      | route | endings   |
      | a     | throttled |
      | b     | ok        |
    Then the throttle decisions are "<decision>"

    Examples:
      | mode                    | threshold | cached | decision               |
      | maximize_cache          | none      | 0      | throttle_returned      |
      | maximize_availability   | none      | 1      | throttle_failover      |
      | maximize_cache          | 0.5       | 0.8    | throttle_returned      |
      | maximize_cache          | 0.5       | 0.5    | throttle_returned      |
      | maximize_cache          | 0.5       | 0.49   | throttle_failover_cold |
      | maximize_cache          | 0.5       | 0      | throttle_failover_cold |
      | maximize_availability   | 0.5       | 0.5    | throttle_returned      |
      | maximize_cache_affinity | 0.5       | 0.2    | throttle_failover_cold |
      | maximize_availability   | 0         | 0      | throttle_returned      |

  @C10 @W19
  Scenario: A model without a policy moves on from a throttle while nothing is cached
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings   |
      | a     | throttled |
      | b     | ok        |
    Then the throttle decisions are "throttle_failover_cold"
    And the moves are
      """
      first a k1
      failover b k1
      completed
      """

  @T5 @T6 @T7 @T9
  Scenario: A schedule waits as often as the cache is worth
    Given the chain
      | route |
      | a     |
      | b     |
    And the policy is maximize_cache with threshold 0.5
    And throttles are redialled 3 times from 500ms up to 8s
    And 0.2 of the prompt is cached on "a"
    When the calls end
      | route | endings   |
      | a     | throttled |
      | b     | ok        |
    Then the moves are
      """
      first a k1
      redial a k1
      failover b k1
      completed
      """
    And the throttle decisions are "throttle_backoff, throttle_failover"
    And each wait is within half and all of "500ms"

  @T6
  Scenario: The last usable route gets the whole schedule
    Given the chain
      | route |
      | a     |
    And the policy is maximize_cache with threshold 0.5
    And throttles are redialled 3 times from 500ms up to 8s
    When the calls end
      | route | endings                          |
      | a     | throttled, throttled, throttled, ok |
    Then the moves are
      """
      first a k1
      redial a k1
      redial a k1
      redial a k1
      completed
      """
    And each wait is within half and all of "500ms, 1s, 2s"

  @T7
  Scenario: A longer ask than the schedule's cap moves on at once
    Given the chain
      | route |
      | a     |
      | b     |
    And the policy is maximize_availability with threshold none
    And throttles are redialled 3 times from 500ms up to 8s
    When the calls end
      | route | endings                  |
      | a     | throttled retry-after 9s |
      | b     | ok                       |
    Then the moves are
      """
      first a k1
      failover b k1
      completed
      """

  @T8
  Scenario: A wait that leaves no time for the answer moves on
    Given the chain
      | route |
      | a     |
      | b     |
    And the policy is maximize_availability with threshold none
    And throttles are redialled 3 times from 500ms up to 8s
    And the request must end within 5s
    When the calls end
      | route | endings                        |
      | a     | throttled@1s retry-after 4s |
      | b     | ok                             |
    Then the moves are
      """
      first a k1
      failover b k1
      completed
      """

  @T11 @W20
  Scenario: A throttle that is returned carries the longest wait that was asked for
    Given the chain
      | route | keys   |
      | a     | k1, k2 |
    And the policy is maximize_cache with threshold none
    When the calls end
      | route | endings                                            |
      | a     | throttled retry-after 20s, throttled retry-after 5s |
    Then the answer is "provider_throttled" with status 429
    And the caller is told to come back after "20s"

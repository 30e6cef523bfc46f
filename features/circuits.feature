Feature: Circuits keep requests from what is known to be down

  @H1 @W19
  Scenario: Two failures in a row open a route for 30 s, and one probe closes it
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings      |
      | a     | server_error |
      | b     | ok           |
    And the calls end
      | route | endings |
      | a     | ok      |
      | b     | ok      |
    Then the moves are
      """
      skip a breaker_open
      first b k1
      completed
      """
    And the skip names the circuit "route"
    And the fallback depth is 1
    When 30s go by
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      probe a k1
      completed
      """
    And the calls end
      | route | endings |
      | a     | ok      |
    And the moves are
      """
      first a k1
      completed
      """

  @H1
  Scenario: A failed probe opens the route again at once
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings      |
      | a     | server_error |
      | b     | ok           |
    And 30s go by
    And the calls end
      | route | endings            |
      | a     | timeout_first_byte |
      | b     | ok                 |
    Then the moves are
      """
      probe a k1
      failover b k1
      completed
      """
    When the calls end
      | route | endings |
      | b     | ok      |
    Then the moves are
      """
      skip a breaker_open
      first b k1
      completed
      """

  @H2
  Scenario: A throttle has a window of its own and opens no circuit
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings                   |
      | a     | throttled retry-after 10s |
      | b     | ok                        |
    And the calls end
      | route | endings |
      | b     | ok      |
    Then the moves are
      """
      skip a throttle_window
      first b k1
      completed
      """
    When 10s go by
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      first a k1
      completed
      """

  @H3 @W2
  Scenario Outline: <class> opens at once
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings |
      | a     | <class> |
      | b     | ok      |
    And the calls end
      | route | endings |
      | b     | ok      |
    Then the moves are
      """
      skip a <reason>
      first b k1
      completed
      """

    Examples:
      | class              | reason          |
      | deployment_missing | breaker_open    |
      | provider_auth      | credential_open |

  @W3 @W8 @H1
  Scenario Outline: <class> touches no circuit
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings |
      | a     | <class> |
      | b     | ok      |
    And the calls end
      | route | endings |
      | a     | <class> |
      | b     | ok      |
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      first a k1
      completed
      """

    Examples:
      | class            |
      | invalid_request  |
      | empty_completion |
      | client_cancelled |

  @H8
  Scenario: A chain that is wholly suppressed still gets a last resort
    Given the chain
      | route |
      | a     |
    When the calls end
      | route | endings      |
      | a     | server_error |
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      skip a breaker_open
      last_resort a k1
      completed
      """

  @H8 @W16 @W20
  Scenario: The last resort is bounded, and then the circuits themselves are the answer
    Given the chain
      | route |
      | a     |
    When the calls end
      | route | endings      |
      | a     | server_error |
    And the calls end
      | route | endings      |
      | a     | server_error |
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      skip a breaker_open
      failed upstream_exhausted
      """
    And the answer is "upstream_exhausted" with status 503
    And the envelope lists "a breaker_open"

  @H10
  Scenario: A model with a single route has a circuit too, and connection failures count
    Given the chain
      | route |
      | a     |
    When the calls end
      | route | endings       |
      | a     | connect_error |
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the skip names the circuit "route"

  @H6
  Scenario: A bad credential shuts nobody else out
    Given the chain
      | route | keys   | strategy |
      | a     | k1, k2 | failover |
    When the calls end
      | route | endings           |
      | a     | provider_auth, ok |
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      first a k2
      completed
      """

  @H8 @N22
  Scenario: A caller who allows no fallback gets its own route's last resort and no other route
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings      |
      | a     | server_error |
      | b     | ok           |
    Given the caller allows no fallback
    When the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      skip a breaker_open
      last_resort a k1
      completed
      """

  @W16
  Scenario: The envelope lists candidates as they were met
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings            |
      | a     | deployment_missing |
      | b     | ok                 |
    And the calls end
      | route | endings       |
      | b     | provider_auth |
    Then the envelope lists "a breaker_open, b provider_auth"

  @H3 @W2 @H12
  Scenario: provider_quota opens at once, wherever the route stands
    Given the chain
      | route |
      | a     |
      | b     |
    When the calls end
      | route | endings        |
      | a     | provider_quota |
      | b     | ok             |
    And the calls end
      | route | endings            |
      | b     | timeout_first_byte |
    Then the moves are
      """
      first b k1
      skip a breaker_open
      failed upstream_exhausted
      """

  @H12 @H3
  Scenario: An account without funds moves behind the better-funded routes, and stays there
    Given the chain
      | route | keys |
      | a     | k1   |
      | b     | k1   |
    When the calls end
      | route | endings        |
      | a     | provider_quota |
      | b     | ok             |
    Then the moves are
      """
      first a k1
      failover b k1
      completed
      """
    And the selections are ", "
    # Its circuit is open for 30 s; its place is behind for longer.
    When 50m go by
    And the calls end
      | route | endings |
      | b     | ok      |
    Then the moves are
      """
      first b k1
      completed
      """
    And the fallback kind is "none"
    # It is the last resort: here its circuit is half open, and this call its probe.
    When the calls end
      | route | endings            |
      | b     | timeout_first_byte |
      | a     | provider_quota     |
    Then the moves are
      """
      first b k1
      probe a k1
      failed upstream_exhausted
      """
    And the selections are ", house_account_exhausted"
    # Somebody paid: it serves once, and has its place again.
    When 50m go by
    And the calls end
      | route | endings            |
      | b     | timeout_first_byte |
      | a     | ok                 |
    Then the moves are
      """
      first b k1
      probe a k1
      completed
      """
    When the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      first a k1
      completed
      """
    And the selections are ""

  @H12
  Scenario: What was known of an account for an hour is asked about again
    Given the chain
      | route | keys |
      | a     | k1   |
      | b     | k1   |
    When the calls end
      | route | endings        |
      | a     | provider_quota |
      | b     | ok             |
    And 61m go by
    And the calls end
      | route | endings        |
      | a     | provider_quota |
      | b     | ok             |
    Then the moves are
      """
      probe a k1
      failover b k1
      completed
      """
    When 1m go by
    And the calls end
      | route | endings |
      | b     | ok      |
    Then the moves are
      """
      first b k1
      completed
      """

  @H12 @W17
  Scenario: A pool with one funded key keeps its place
    Given the chain
      | route | keys   | strategy |
      | a     | k1, k2 | failover |
      | b     | k1     |          |
    When the calls end
      | route | endings        |
      | a     | provider_quota |
      | b     | ok             |
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      first a k2
      completed
      """

  @H12 @W6
  Scenario: An organization's own account is never put behind the operator's
    Given the chain
      | route | owner     | keys |
      | a     | workspace | k1   |
      | b     |           | k1   |
    When the calls end
      | route | endings        |
      | a     | provider_quota |
    And 1m go by
    And the calls end
      | route | endings |
      | a     | ok      |
    Then the moves are
      """
      probe a k1
      completed
      """
    And the selections are ""

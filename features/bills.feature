Feature: Bills add up, are corrected in the open, and are closed for good

  A token costs 1 nano-USD on the deployment "fable-5@east" where nothing else is said.

  @M14 @M11
  Scenario: A bill is the sum of its lines, and each line of its attempts
    When 100 tokens of "acme" are settled on "fable-5@east" at "2026-11-10"
    And 20 tokens of "acme" are settled on "fable-5@west" at "2026-11-11"
    And 3 tokens of "globex" are settled on "fable-5@east" at "2026-11-11"
    Then the "2026-11" bill of "acme" is open at 120
    And it has the lines
      | deployment   | attempts | charge |
      | fable-5@east | 1        | 100    |
      | fable-5@west | 1        | 20     |
    And every line is the sum of its attempts
    And the "2026-11" bill of "globex" is open at 3

  @M15 @E4
  Scenario: A wrong price changes nothing before the rebuild, and then just what the dry run said
    When 100 tokens of "acme" are settled on "fable-5@east" at "2026-11-10"
    And 100 tokens of "acme" are settled on "fable-5@east" at "2026-11-20"
    And 100 tokens of "acme" are settled on "fable-5@west" at "2026-11-10"
    And 7 tokens of "globex" are settled on "fable-5@east" at "2026-11-11"
    And the price of "fable-5@east" is corrected to 3 from "2026-11-01" to "2026-11-15"
    Then the "2026-11" bill of "acme" is open at 300
    And the dry run says
      | tenant | before | after | difference |
      | acme   | 300    | 500   | 200        |
      | globex | 7      | 21    | 14         |
    And the bills are what the log adds up to
    When the bills are rebuilt
    Then the "2026-11" bill of "acme" is open at 500
    And the "2026-11" bill of "globex" is open at 21
    And the bills are what the log adds up to
    And a second rebuild leaves the same bytes
    And the dry run says
      | tenant | before | after | difference |
      | acme   | 500    | 500   | 0          |
      | globex | 21     | 21    | 0          |

  @M14
  Scenario: What comes after the closing stands on the next bill
    When 1000 tokens of "acme" are settled on "fable-5@east" at "2026-11-10"
    And the "2026-11" bill of "acme" is closed
    Then the "2026-11" bill of "acme" is closed at 1000
    When 10 tokens of "acme" are settled on "fable-5@east" at "2026-11-30"
    And 5 tokens of "acme" are settled on "fable-5@east" at "2026-12-02"
    And the price of "fable-5@east" is corrected to 2 from "2026-11-01" to "2026-12-01"
    And the bills are rebuilt
    Then the "2026-11" bill of "acme" is closed at 1000
    And the "2026-12" bill of "acme" is open at 1025
    And it has the adjustments
      | of      | reason          | charge |
      | 2026-11 | late_settlement | 20     |
      | 2026-11 | seen later      | 1000   |
    And the bills are what the log adds up to

  @M14
  Scenario: Bills are closed in order, and never twice
    When 1 tokens of "acme" are settled on "fable-5@east" at "2026-11-10"
    And 1 tokens of "acme" are settled on "fable-5@east" at "2026-12-10"
    Then closing the "2026-12" bill of "acme" is refused
    When the "2026-11" bill of "acme" is closed
    And the "2026-12" bill of "acme" is closed
    Then closing the "2026-11" bill of "acme" is refused
    And the bills are what the log adds up to

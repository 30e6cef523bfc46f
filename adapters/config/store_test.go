package config_test

import "time"

var testTime = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

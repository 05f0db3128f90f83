package jsonerr

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescribe(t *testing.T) {
	for in, want := range map[string]string{
		`{"list": {}}`:             "bad JSON: list is an object, wanted a list (byte 10)",
		`{"list": [{"n": "x"}]}`:   "bad JSON: list.n is a string, wanted an integer of 64 bits (byte 19)",
		`{"list": [{"n": 1.5}]}`:   "bad JSON: list.n is number 1.5, wanted an integer of 64 bits (byte 19)",
		`{"list": [3]}`:            "bad JSON: list is a number, wanted an object (byte 11)",
		`{"text": true, "on": 1}`:  "bad JSON: text is a bool, wanted a string (byte 13)",
		`{"on": "x"}`:              "bad JSON: on is a string, wanted true or false (byte 10)",
		`{"f": []}`:                "bad JSON: f is a list, wanted a number (byte 7)",
		`[]`:                       "bad JSON: the whole is a list, wanted an object (byte 1)",
		`{"list": [`:               "JSON is cut short",
		``:                         "JSON is cut short",
		`{"list": ]}`:              "bad JSON: invalid character ']' looking for beginning of value (byte 10)",
		strings.Repeat("[", 20000): "bad JSON: invalid character '[' exceeded max depth (byte 10001)",
		`{"own": 1}`:               "bad JSON: own words",
		`{"list": [{"n": 1` + strings.Repeat("0", 100) + `}]}`: "bad JSON: list.n is number 1" + strings.Repeat("0", 52) + "..., wanted an integer of 64 bits (byte 117)",
	} {
		var v struct {
			List []struct {
				N *int64 `json:"n"`
			} `json:"list"`
			Text string   `json:"text"`
			On   bool     `json:"on"`
			F    *float64 `json:"f"`
			Own  own      `json:"own"`
		}
		err := json.Unmarshal([]byte(in), &v)
		require.Error(t, err)
		require.EqualError(t, Describe(err), want)
	}
}

type own struct{}

func (own) UnmarshalJSON([]byte) error { return fmt.Errorf("own words") }

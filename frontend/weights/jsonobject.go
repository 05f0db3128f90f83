package weights

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"tpuc/internal/jsonerr"
)

// eachField calls visit for every member of the JSON object in data, in order. A repeated name calls repeated instead, so that
// the caller can go on and list all of them. Anything after the object but white space is an error.
func eachField(data []byte, visit func(name string, value json.RawMessage) error, repeated func(name string)) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	tok, err := dec.Token()
	if err != nil {
		return jsonerr.Describe(err)
	}
	if tok != json.Delim('{') {
		return fmt.Errorf("JSON starts with %v, wanted an object", tok)
	}
	seen := make(map[string]bool)
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return jsonerr.Describe(err)
		}
		name, ok := tok.(string)
		if !ok {
			return fmt.Errorf("JSON object has the key %v, wanted a string", tok)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return jsonerr.Describe(err)
		}
		if seen[name] {
			repeated(name)
			continue
		}
		seen[name] = true
		if err := visit(name, value); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return jsonerr.Describe(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("JSON goes on after its object")
	}
	return nil
}

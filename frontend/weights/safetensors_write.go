package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"tpuc/internal/atomicfile"
	"tpuc/ir/tensor"
)

// Named is a tensor with a name.
type Named struct {
	Name string
	*tensor.Tensor
}

// dataAlign is where the data of written files begins: plugins use weights in place at addresses that are multiples of it.
const dataAlign = 64

// WriteSafetensors writes the tensors, in order, as a safetensors file whose data begins at a multiple of 64 bytes. The file appears under
// its name only when it is complete. Equal tensors give equal bytes. Dtypes that the format lacks (i4, u4, c128) and repeated names are
// errors.
func WriteSafetensors(path string, tensors []Named) error {
	header, err := safetensorsHeader(tensors)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return atomicfile.Write(path, func(w io.Writer) error { return writeTensors(w, header, tensors) })
}

// EncodeSafetensors is the file that WriteSafetensors writes.
func EncodeSafetensors(tensors []Named) ([]byte, error) {
	header, err := safetensorsHeader(tensors)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = writeTensors(&b, header, tensors)
	return b.Bytes(), err
}

func writeTensors(w io.Writer, header []byte, tensors []Named) error {
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, t := range tensors {
		if _, err := w.Write(t.Data); err != nil {
			return err
		}
	}
	return nil
}

// safetensorsHeader is everything before the data: the length, the JSON and spaces up to the alignment.
func safetensorsHeader(tensors []Named) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	seen := make(map[string]bool)
	at := int64(0)
	for i, t := range tensors {
		name, err := safeDTypeName(t.DType)
		switch {
		case err != nil:
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		case seen[t.Name]:
			return nil, fmt.Errorf("tensor %q is given twice", t.Name)
		case t.Name == "__metadata__":
			return nil, fmt.Errorf("tensor %q: the format reserves this name", t.Name)
		}
		seen[t.Name] = true
		key, err := json.Marshal(t.Name)
		if err != nil {
			return nil, err
		}
		shape, err := json.Marshal(append([]int64{}, t.Dims...))
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		end := at + int64(len(t.Data))
		fmt.Fprintf(&b, `%s:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, key, name, shape, at, end)
		at = end
	}
	b.WriteByte('}')
	b.Write(bytes.Repeat([]byte{' '}, (dataAlign-b.Len()%dataAlign)%dataAlign))
	if b.Len()-8 > maxHeader {
		return nil, fmt.Errorf("%d tensors make a header of %d bytes, wanted at most %d", len(tensors), b.Len()-8, maxHeader)
	}
	out := b.Bytes()
	binary.LittleEndian.PutUint64(out, uint64(len(out)-8))
	return out, nil
}

func safeDTypeName(d tensor.DType) (string, error) {
	var names []string
	for n, s := range safeDTypes {
		if s.dtype == d && d != tensor.Invalid {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return "", fmt.Errorf("safetensors has no dtype for %s", d)
	}
	return slices.Min(names), nil
}

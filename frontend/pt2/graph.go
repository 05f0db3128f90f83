package pt2

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// The JSON of models/<name>.json, schema major version 8 (torch/_export/serde/schema.py). Fields that nothing here reads are left
// out: torch itself ignores unknown fields of a known major version.

type exportedProgram struct {
	GraphModule      graphModule               `json:"graph_module"`
	RangeConstraints map[string]rangeConstrain `json:"range_constraints"`
	SchemaVersion    schemaVersion             `json:"schema_version"`
	Verifiers        []string                  `json:"verifiers"`
	TorchVersion     string                    `json:"torch_version"`
}

type schemaVersion struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
}

// rangeConstrain bounds a symbol, both ends included; nil is unbounded.
type rangeConstrain struct {
	Min *int64 `json:"min_val"`
	Max *int64 `json:"max_val"`
}

type graphModule struct {
	Graph           graph             `json:"graph"`
	Signature       graphSignature    `json:"signature"`
	ModuleCallGraph []moduleCallEntry `json:"module_call_graph"`
}

type moduleCallEntry struct {
	FQN       string `json:"fqn"`
	Signature *struct {
		InSpec          string   `json:"in_spec"`
		OutSpec         string   `json:"out_spec"`
		ForwardArgNames []string `json:"forward_arg_names"`
	} `json:"signature"`
}

type graph struct {
	Inputs         []argument            `json:"inputs"`
	Outputs        []argument            `json:"outputs"`
	Nodes          []node                `json:"nodes"`
	TensorValues   map[string]tensorMeta `json:"tensor_values"`
	SymIntValues   map[string]symInt     `json:"sym_int_values"`
	SymFloatValues map[string]symFloat   `json:"sym_float_values"`
}

type node struct {
	Target   string     `json:"target"`
	Inputs   []namedArg `json:"inputs"`
	Outputs  []argument `json:"outputs"`
	Metadata struct {
		StackTrace    string `json:"stack_trace"`
		NNModuleStack string `json:"nn_module_stack"`
	} `json:"metadata"`
}

type namedArg struct {
	Name string   `json:"name"`
	Arg  argument `json:"arg"`
}

// argument is a union: exactly one field is set.
type argument struct {
	Tensor          *nameRef      `json:"as_tensor"`
	Tensors         *[]nameRef    `json:"as_tensors"`
	OptionalTensor  *argument     `json:"as_optional_tensor"`
	OptionalTensors *[]argument   `json:"as_optional_tensors"`
	NestedTensors   *[][]nameRef  `json:"as_nested_tensors"`
	Int             *int64        `json:"as_int"`
	Ints            *[]int64      `json:"as_ints"`
	Float           *number       `json:"as_float"`
	Floats          *[]number     `json:"as_floats"`
	Bool            *bool         `json:"as_bool"`
	Bools           *[]bool       `json:"as_bools"`
	String          *string       `json:"as_string"`
	Strings         *[]string     `json:"as_strings"`
	Complex         *complexValue `json:"as_complex"`
	None            *noneArg      `json:"as_none"`
	SymInt          *symRef       `json:"as_sym_int"`
	SymInts         *[]symRef     `json:"as_sym_ints"`
	SymFloat        *symRef       `json:"as_sym_float"`
	SymBool         *symRef       `json:"as_sym_bool"`
	ScalarType      *int          `json:"as_scalar_type"`
	MemoryFormat    *int          `json:"as_memory_format"`
	Layout          *int          `json:"as_layout"`
	Device          *struct {
		Type string `json:"type"`
	} `json:"as_device"`
	Graph     *graphArg       `json:"as_graph"`
	CustomObj json.RawMessage `json:"as_custom_obj"`
	Operator  *string         `json:"as_operator"`
}

type nameRef struct {
	Name string `json:"name"`
}

type complexValue struct {
	Real number `json:"real"`
	Imag number `json:"imag"`
}

// symRef is a symbolic value by name, or a constant in its place.
type symRef struct {
	Name  *string `json:"as_name"`
	Int   *int64  `json:"as_int"`
	Float *number `json:"as_float"`
	Bool  *bool   `json:"as_bool"`
}

// number is a float that JSON may hold as the string "Infinity", "-Infinity" or "NaN".
type number float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	if len(b) > 1 && b[0] == '"' {
		switch s := string(b[1 : len(b)-1]); s {
		case "Infinity":
			*n = number(math.Inf(1))
		case "-Infinity":
			*n = number(math.Inf(-1))
		case "NaN":
			*n = number(math.NaN())
		default:
			return fmt.Errorf("float is %q, wanted a number, Infinity, -Infinity or NaN", s)
		}
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return fmt.Errorf("float is %s, wanted a number", b)
	}
	*n = number(f)
	return nil
}

// noneArg is Python's None: true, or in archives of torch 2.5 an empty list.
type noneArg struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*noneArg) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "true", "false", "[]":
		return nil
	}
	return fmt.Errorf("as_none is %.20s, wanted true or []", b)
}

// tensorMeta describes a tensor; dtype and layout are torch's serialised numbers.
type tensorMeta struct {
	DType   int      `json:"dtype"`
	Sizes   []symInt `json:"sizes"`
	Strides []symInt `json:"strides"`
	Layout  int      `json:"layout"`
	Device  *struct {
		Type string `json:"type"`
	} `json:"device"`
}

// symInt is a constant, or an expression over symbols with the value that the example inputs gave it.
type symInt struct {
	Int  *int64   `json:"as_int"`
	Expr *symExpr `json:"as_expr"`
}

type symExpr struct {
	Expr string  `json:"expr_str"`
	Hint *symRef `json:"hint"`
}

type symFloat struct {
	Float *number  `json:"as_float"`
	Expr  *symExpr `json:"as_expr"`
}

type graphSignature struct {
	Inputs  []inputSpec  `json:"input_specs"`
	Outputs []outputSpec `json:"output_specs"`
}

// inputSpec is a union: exactly one field is set.
type inputSpec struct {
	UserInput *struct {
		Arg argument `json:"arg"`
	} `json:"user_input"`
	Parameter *struct {
		Arg  nameRef `json:"arg"`
		Name string  `json:"parameter_name"`
	} `json:"parameter"`
	Buffer *struct {
		Arg        nameRef `json:"arg"`
		Name       string  `json:"buffer_name"`
		Persistent bool    `json:"persistent"`
	} `json:"buffer"`
	TensorConstant *struct {
		Arg  nameRef `json:"arg"`
		Name string  `json:"tensor_constant_name"`
	} `json:"tensor_constant"`
	ConstantInput *struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"`
	} `json:"constant_input"`
	CustomObj *struct {
		Arg nameRef `json:"arg"`
	} `json:"custom_obj"`
	Token *struct{} `json:"token"`
}

// outputSpec is a union: exactly one field is set.
type outputSpec struct {
	UserOutput *struct {
		Arg argument `json:"arg"`
	} `json:"user_output"`
	LossOutput *struct {
		Arg nameRef `json:"arg"`
	} `json:"loss_output"`
	BufferMutation *struct {
		Arg  nameRef `json:"arg"`
		Name string  `json:"buffer_name"`
	} `json:"buffer_mutation"`
	ParameterMutation *struct {
		Arg  nameRef `json:"arg"`
		Name string  `json:"parameter_name"`
	} `json:"parameter_mutation"`
	UserInputMutation *struct {
		Arg  nameRef `json:"arg"`
		Name string  `json:"user_input_name"`
	} `json:"user_input_mutation"`
	Token *struct{} `json:"token"`
}

// kind names the field of the union that is set, for messages.
func (a *argument) kind() string {
	switch {
	case a.Tensor != nil:
		return "tensor"
	case a.Tensors != nil:
		return "tensors"
	case a.OptionalTensor != nil:
		return "optional tensor"
	case a.OptionalTensors != nil:
		return "optional tensors"
	case a.NestedTensors != nil:
		return "nested tensors"
	case a.Int != nil:
		return "int"
	case a.Ints != nil:
		return "ints"
	case a.Float != nil:
		return "float"
	case a.Floats != nil:
		return "floats"
	case a.Bool != nil:
		return "bool"
	case a.Bools != nil:
		return "bools"
	case a.String != nil:
		return "string"
	case a.Strings != nil:
		return "strings"
	case a.Complex != nil:
		return "complex"
	case a.None != nil:
		return "none"
	case a.SymInt != nil:
		return "symbolic int"
	case a.SymInts != nil:
		return "symbolic ints"
	case a.SymFloat != nil:
		return "symbolic float"
	case a.SymBool != nil:
		return "symbolic bool"
	case a.ScalarType != nil:
		return "dtype"
	case a.MemoryFormat != nil:
		return "memory format"
	case a.Layout != nil:
		return "layout"
	case a.Device != nil:
		return "device"
	case a.Graph != nil:
		return "graph"
	case a.Operator != nil:
		return "operator"
	case len(a.CustomObj) > 0:
		return "custom object"
	}
	return "unknown"
}

package tpuc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tpuc/internal/compare"
	"tpuc/internal/plural"
)

// Case is one archive of a suite with the calls that are made of it. docs/testing-models.md describes the folders it comes from.
type Case struct {
	Name    string `json:"name"`    // its folder, and the sample where a folder holds several, such as "ops/op_add/s0"
	Variant string `json:"variant"` // VariantRaw, VariantDecomposed, or the archive's name where that is another
	Model   string `json:"model"`   // path of the archive

	Calls       []CaseCall         `json:"-"`                     // in order
	CompileOnly bool               `json:"-"`                     // there is nothing to compare with by design: NAME.pt2 beside NAME.case.json
	Stateful    bool               `json:"-"`                     // state is carried over from call to call; otherwise each call begins with the initial state
	Tolerance   *compare.Tolerance `json:"-"`                     // nil: compare.Default of each dtype
	Noise       float64            `json:"torch_noise,omitempty"` // torch's own error against float64, which bounds that of bf16 and f16 outputs; 0: not known
	Expect      *string            `json:"-"`                     // the archive must be refused with a message that holds this
	Problem     string             `json:"-"`                     // why it cannot be run; empty: it can
}

// CaseCall are the safetensors files of one call.
type CaseCall struct {
	Inputs, Outputs string
	State           []string // state and inputs as they are after the call
}

// Variants of a model that is there in two.
const (
	VariantRaw        = "raw"        // as captured
	VariantDecomposed = "decomposed" // after run_decompositions
)

// ID is the case's name and variant, which is what a selection matches.
func (c Case) ID() string { return c.Name + "/" + c.Variant }

// Decomposed reports an archive that is the decomposed form of another.
func (c Case) Decomposed() bool {
	return c.Variant == VariantDecomposed || strings.HasSuffix(c.Variant, ".decomp")
}

// FindCases finds all archives below the folders, or the archives named themselves, in order of path. A folder without any is an error. An
// archive that nothing says how to run is a case with a Problem, so that nothing is left out in silence. Symbolic links in a folder are not followed.
func FindCases(dirs []string) ([]Case, error) {
	var out []Case
	var errs []error
	for i, label := range labels(dirs) {
		found, err := findBelow(dirs[i], label)
		switch {
		case err != nil:
			errs = append(errs, err)
		case len(found) == 0:
			errs = append(errs, fmt.Errorf("%s holds no case, wanted models (.pt2, .pt2.gz, .mlir) with inputs.safetensors and outputs.safetensors beside them", dirs[i]))
		}
		out = append(out, found...)
	}
	return out, errors.Join(errs...)
}

// labels are what names begin with: base names, or the paths as given where those are not unique.
func labels(dirs []string) []string {
	out := make([]string, len(dirs))
	count := make(map[string]int)
	for i, d := range dirs {
		out[i] = filepath.Base(filepath.Clean(d))
		if abs, err := filepath.Abs(d); err == nil {
			out[i] = filepath.Base(abs)
		}
		count[out[i]]++
	}
	for i, d := range dirs {
		if count[out[i]] > 1 {
			out[i] = filepath.ToSlash(filepath.Clean(d))
		}
	}
	return out
}

func findBelow(dir, label string) ([]Case, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	if st, err := os.Stat(root); err != nil {
		return nil, err
	} else if !st.IsDir() {
		if _, ok := archiveStem(root); !ok {
			return nil, fmt.Errorf("%s is a file, wanted a model (.pt2, .pt2.gz, .mlir) or a folder", dir)
		}
		f, err := readFolder(filepath.Dir(root), filepath.Base(filepath.Dir(root)))
		if err != nil {
			return nil, err
		}
		return []Case{f.makeCase(filepath.Base(root))}, nil
	}
	var out []Case
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f, err := readFolder(path, strings.TrimSuffix(label+"/"+filepath.ToSlash(rel), "/."))
		if err != nil {
			return err
		}
		for _, archive := range f.archives {
			out = append(out, f.makeCase(archive))
		}
		return nil
	})
	slices.SortStableFunc(out, func(a, b Case) int { return naturally(a.Name, b.Name) })
	return out, err
}

// folder is a directory that holds archives.
type folder struct {
	dir, name string
	files     map[string]bool
	archives  []string
}

func readFolder(dir, name string) (*folder, error) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, err
	}
	f := &folder{dir: dir, name: name, files: make(map[string]bool)}
	for _, e := range entries {
		if !e.IsDir() {
			f.files[e.Name()] = true
		}
	}
	for _, e := range entries {
		stem, ok := archiveStem(e.Name())
		if !ok || e.IsDir() || strings.HasSuffix(e.Name(), ".gz") && f.files[stem+".pt2"] { // the same archive packed
			continue
		}
		f.archives = append(f.archives, e.Name())
	}
	slices.SortStableFunc(f.archives, func(a, b string) int { return boolInt(isModel(b)) - boolInt(isModel(a)) }) // before what is made of it
	return f, nil
}

// makeCase makes the case of an archive by what lies beside it: files of its own, or else those that all archives of the folder share.
func (f *folder) makeCase(archive string) Case {
	stem, _ := archiveStem(archive)
	c := Case{Name: f.name, Variant: stem, Model: filepath.Join(f.dir, archive)}
	switch stem {
	case "model":
		c.Variant = VariantRaw
	case "decomposed":
		c.Variant = VariantDecomposed
	}
	prefix, about := "", "case.json"
	switch {
	case f.files[stem+".inputs.safetensors"]:
		c.Name, c.Variant, prefix = f.name+"/"+stem, VariantRaw, stem+"."
	case f.files[stem+".case.json"]:
		c.Name, c.Variant, about = f.name+"/"+stem, VariantRaw, stem+".case.json"
		c.CompileOnly = true
	}
	info := caseInfo{}
	if f.files[about] {
		var err error
		if info, err = readCaseInfo(filepath.Join(f.dir, about), stem, prefix != ""); err != nil {
			c.Problem = err.Error()
			return c
		}
	}
	if !c.CompileOnly {
		f.addCalls(&c, prefix)
	}
	info.apply(&c)
	return c
}

// addCalls finds the files of the calls: KIND.safetensors, then KIND_2.safetensors and so on.
func (f *folder) addCalls(c *Case, prefix string) {
	for i := 0; ; i++ {
		file := func(kind string) string {
			name := numbered(prefix+kind+".safetensors", i)
			if !f.files[name] {
				return ""
			}
			return filepath.Join(f.dir, name)
		}
		call := CaseCall{Inputs: file("inputs"), Outputs: file("outputs")}
		for _, kind := range []string{"buffers_after", "inputs_after"} {
			if s := file(kind); s != "" {
				call.State = append(call.State, s)
				c.Stateful = c.Stateful || kind == "buffers_after"
			}
		}
		if call.Inputs == "" {
			if call.Outputs != "" || call.State != nil {
				c.Problem = fmt.Sprintf("call %d has outputs but no inputs, wanted %s", i+1, numbered(prefix+"inputs.safetensors", i))
			}
			return
		}
		if call.Outputs == "" && call.State == nil {
			c.Problem = fmt.Sprintf("call %d has nothing to compare with, wanted %s", i+1, numbered(prefix+"outputs.safetensors", i))
		}
		c.Calls = append(c.Calls, call)
	}
}

// archiveStem is an archive's name without its extensions.
func archiveStem(name string) (string, bool) {
	for _, ext := range stableHLONames {
		if stem, ok := strings.CutSuffix(name, ext); ok {
			return stem, true
		}
	}
	return strings.CutSuffix(strings.TrimSuffix(name, ".gz"), ".pt2")
}

func isModel(archive string) bool {
	stem, _ := archiveStem(archive)
	return stem == "model"
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// naturally compares names as people count: s2 before s10.
func naturally(a, b string) int {
	digits := func(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }
	for a != "" && b != "" {
		if n, m := digits(a), digits(b); n > 0 && m > 0 {
			x, y := strings.TrimLeft(a[:n], "0"), strings.TrimLeft(b[:m], "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if c := strings.Compare(x, y); c != 0 {
				return c
			}
			a, b = a[n:], b[m:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

// caseInfo is what is read of case.json; all of it is optional.
type caseInfo struct {
	Case       string          `json:"case"`      // in a list of cases: the sample
	Tolerance  json.RawMessage `json:"tolerance"` // a number or an object
	Expect     *string         `json:"expect"`
	Calls      int             `json:"calls"`
	Stateful   *bool           `json:"stateful"`
	Noise      *float64        `json:"f32_noise_vs_f64"` // both: relative to 1 + the largest |reference|, as tolerances are
	OpNoise    *float64        `json:"noise_vs_f64"`
	Cases      []caseInfo      `json:"cases"`
	tolerances *compare.Tolerance
}

// maxCaseInfo bounds the size of a case.json.
const maxCaseInfo = 64 << 20

// readCaseInfo reads a case.json.
func readCaseInfo(path, sample string, several bool) (caseInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return caseInfo{}, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCaseInfo+1))
	switch {
	case err != nil:
		return caseInfo{}, err
	case len(data) > maxCaseInfo:
		return caseInfo{}, fmt.Errorf("%s has more than %d bytes, wanted at most that", filepath.Base(path), maxCaseInfo)
	}
	return parseCaseInfo(filepath.Base(path), data, sample, several)
}

// parseCaseInfo reads the contents of a case.json. Where it lists cases and the archive is one of several samples, the entry of that name is taken.
func parseCaseInfo(file string, data []byte, sample string, several bool) (caseInfo, error) {
	var info caseInfo
	if err := json.Unmarshal(standardJSON(data), &info); err != nil {
		return info, fmt.Errorf("%s: %w", file, err)
	}
	if several && info.Cases != nil {
		i := slices.IndexFunc(info.Cases, func(c caseInfo) bool { return c.Case == sample })
		if i < 0 {
			return info, fmt.Errorf("%s lists cases, but not %q", file, sample)
		}
		info = info.Cases[i]
	}
	return info, info.readTolerance(file)
}

func (info *caseInfo) readTolerance(file string) error {
	if len(info.Tolerance) == 0 || string(info.Tolerance) == "null" {
		return nil
	}
	var t struct {
		RelToMax *float64 `json:"rel_to_max"`
		Rtol     *float64 `json:"rtol"`
		Atol     *float64 `json:"atol"`
	}
	if json.Unmarshal(info.Tolerance, &t.RelToMax) != nil {
		if err := json.Unmarshal(info.Tolerance, &t); err != nil {
			return fmt.Errorf("%s: tolerance is %s, wanted a number or {\"rel_to_max\": number}", file, info.Tolerance)
		}
	}
	at := func(x *float64) float64 {
		if x == nil {
			return 0
		}
		return *x
	}
	info.tolerances = &compare.Tolerance{RelToMax: at(t.RelToMax), Elementwise: t.RelToMax == nil, Rtol: at(t.Rtol), Atol: at(t.Atol)}
	if t.RelToMax == nil && t.Rtol == nil && t.Atol == nil || min(at(t.RelToMax), at(t.Rtol), at(t.Atol)) < 0 {
		return fmt.Errorf("%s: tolerance is %s, wanted rel_to_max, or rtol and atol, of 0 or more", file, info.Tolerance)
	}
	return nil
}

// apply puts what the file says into the case, and finds out whether it can be run.
func (info caseInfo) apply(c *Case) {
	c.Tolerance = info.tolerances
	if info.Stateful != nil {
		c.Stateful = *info.Stateful
	}
	for _, n := range []*float64{info.Noise, info.OpNoise} {
		if n != nil && *n > 0 {
			c.Noise = *n
		}
	}
	if info.Expect != nil {
		words, ok := strings.CutPrefix(*info.Expect, "refused")
		if !ok {
			c.Problem = fmt.Sprintf("expect is %q, wanted \"refused: \" and what the message must name", *info.Expect)
			return
		}
		words = strings.TrimSpace(strings.TrimPrefix(words, ":"))
		c.Expect, c.Problem = &words, ""
		return
	}
	switch {
	case c.CompileOnly || c.Problem != "":
	case len(c.Calls) == 0:
		stem, _ := archiveStem(filepath.Base(c.Model))
		c.Problem = fmt.Sprintf("there are no inputs, wanted inputs.safetensors or %s.inputs.safetensors; or %s.case.json to compile only", stem, stem)
	case info.Calls > len(c.Calls):
		c.Problem = fmt.Sprintf("there are inputs for %s, wanted %d", plural.Of(len(c.Calls), "call"), info.Calls)
	}
}

// standardJSON replaces the NaN and Infinity that Python writes outside of strings by null.
func standardJSON(data []byte) []byte {
	if !bytes.Contains(data, []byte("NaN")) && !bytes.Contains(data, []byte("Infinity")) {
		return data
	}
	out := make([]byte, 0, len(data))
	quoted := false
	for i := 0; i < len(data); i++ {
		switch rest := data[i:]; {
		case data[i] == '"':
			quoted = !quoted
		case quoted && data[i] == '\\' && i+1 < len(data):
			out = append(out, data[i])
			i++
		case !quoted:
			word := slices.IndexFunc(notNumbers, func(w string) bool { return bytes.HasPrefix(rest, []byte(w)) })
			if word >= 0 {
				out = append(out, "null"...)
				i += len(notNumbers[word]) - 1
				continue
			}
		}
		out = append(out, data[i])
	}
	return out
}

// notNumbers are what Python's json writes for numbers that are not finite.
var notNumbers = []string{"NaN", "-Infinity", "Infinity"}

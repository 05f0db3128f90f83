package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tpuc"
	"tpuc/frontend/pt2"
)

// A section stands between two lines of this form, so that it can be replaced alone.
const begin, end = "<!-- section %s -->\n", "<!-- end %s -->\n"

const intro = `# Coverage

Written by tools/coverage from the operator table and from reports of tpuc test; docs/testing.md says how. Not edited by hand.

`

// page is the whole file: new sections where there is something new to say, otherwise those of the old text.
func page(old string, reports []*tpuc.SuiteReport) string {
	text := map[string]string{"operators": operators()}
	for _, r := range reports {
		for name, s := range results(r) {
			text[name] = s
		}
	}
	for name := range sections(old) {
		if _, ok := text[name]; !ok {
			text[name] = sections(old)[name]
		}
	}
	var b strings.Builder
	b.WriteString(intro)
	for _, name := range slices.SortedFunc(maps.Keys(text), bySection) {
		fmt.Fprintf(&b, begin, name)
		b.WriteString(text[name])
		fmt.Fprintf(&b, end+"\n", name)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// bySection puts the cases before the operators.
func bySection(a, b string) int {
	return cmp.Or(cmp.Compare(btoi(a == "operators"), btoi(b == "operators")), cmp.Compare(a, b))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sections are the parts of a page by name.
func sections(page string) map[string]string {
	out := make(map[string]string)
	for {
		_, rest, ok := strings.Cut(page, "<!-- section ")
		if !ok {
			return out
		}
		name, rest, ok := strings.Cut(rest, " -->\n")
		body, after, closed := strings.Cut(rest, fmt.Sprintf(end, name))
		if !ok || !closed {
			return out
		}
		out[name], page = body, after
	}
}

// operators is the section of the operator table.
func operators() string {
	var supported, other []string
	refused := make(map[string][]string)
	count := 0
	for _, o := range pt2.Operators() {
		if aten := !strings.Contains(o.Name, "::") && !strings.Contains(o.Name, "._") && !foreign(o.Name); !aten {
			other = append(other, o.Name)
			continue
		}
		count++
		if o.Supported {
			supported = append(supported, o.Name)
		} else {
			refused[o.Reason] = append(refused[o.Reason], o.Name)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## Operators\n\nOf the %d aten overloads of torch 2.15 that have to do with tensors, %d are supported in archives. A rule may refuse single\n"+
		"forms of its operator; the refusals of the cases above show which. Operators without a rule can be given one by their users\n"+
		"([custom-ops.md](custom-ops.md)).\n\n", count, len(supported))
	fmt.Fprintf(&b, "### Supported\n\n%s\n", overloads(supported))
	fmt.Fprintf(&b, "### Supported, of other namespaces\n\n%s\n", wrap(other))
	b.WriteString("### Not supported\n")
	for _, reason := range slices.Sorted(maps.Keys(refused)) {
		fmt.Fprintf(&b, "\n%s (%d):\n%s", upper(reason), len(refused[reason]), overloads(refused[reason]))
	}
	return b.String()
}

// foreign reports an operator of a namespace other than aten's, such as "_operator.add".
func foreign(name string) bool {
	space, _, _ := strings.Cut(name, ".")
	return slices.Contains([]string{"_operator", "math", "torch", "transformers", "torchvision", "higher_order", "prims"}, space)
}

// overloads lists names with the overloads of one operator together: "add (Scalar, Tensor)".
func overloads(names []string) string {
	by := make(map[string][]string)
	for _, n := range names {
		base, overload, _ := strings.Cut(n, ".")
		by[base] = append(by[base], cmp.Or(overload, "default"))
	}
	var out []string
	for _, base := range slices.Sorted(maps.Keys(by)) {
		if list := by[base]; len(list) > 1 || list[0] != "default" {
			base += " (" + strings.Join(list, ", ") + ")"
		}
		out = append(out, base)
	}
	return wrap(out)
}

// wrap joins words with commas into lines.
func wrap(words []string) string {
	const width = 140
	var b strings.Builder
	line := 0
	for i, w := range words {
		if i < len(words)-1 {
			w += ","
		}
		if line > 0 && line+1+len(w) > width {
			b.WriteString("\n")
			line = 0
		}
		if line > 0 {
			b.WriteString(" ")
		}
		b.WriteString(w)
		line += 1 + len(w)
	}
	return b.String() + "\n"
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

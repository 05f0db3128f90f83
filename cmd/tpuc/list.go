package main

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tpuc"
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/passes"
	"tpuc/tpu/chip"
	"tpuc/tpu/plugin"
)

func newList() *cobra.Command {
	var asJSON bool
	f := &compileFlags{}
	c := &cobra.Command{
		Use:     "list ops|passes|targets|plugins",
		Short:   "List operators, passes, targets or plugins",
		Long:    "List the operators of the IR, the passes in a compile's order, the targets, or the plugins and where they are.",
		Example: "  tpuc list targets\n  tpuc list plugins --json",
		Args:    argCount(1, "one of ops, passes, targets, plugins"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return listings, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf("list", args[0], listings); err != nil {
				return err
			}
			l, err := listing(args[0], f.plugin())
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), l.rows)
			}
			return l.write(c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&f.cache, "cache", "", "folder of the cache that plugins are looked for in (default: $TPUC_CACHE, else tpuc in the user's cache folder)")
	addJSON(c, &asJSON)
	return c
}

var listings = []string{"ops", "passes", "targets", "plugins"}

// table is a listing: rows for JSON, and each of them as cells.
type table struct {
	head  []string
	rows  any
	cells [][]string
}

func (t table) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(t.head, "\t"))
	for _, row := range t.cells {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
}

func listing(what string, o plugin.Options) (table, error) {
	switch what {
	case "ops":
		return listOps(), nil
	case "passes":
		return listPasses(), nil
	case "targets":
		return listTargets(), nil
	}
	return listPlugins(o)
}

type opRow struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind"` // "primitive" or "composite"
	Args  []string `json:"args"`
	Attrs []string `json:"attributes"`
	Doc   string   `json:"doc"`
}

func listOps() table {
	t := table{head: []string{"name", "kind", "arguments", "what it computes", "attributes"}}
	var rows []opRow
	for _, o := range op.All {
		r := opRow{Name: o.Name, Kind: "primitive", Args: []string{}, Attrs: attributes(o), Doc: o.Doc}
		if o.Composite() {
			r.Kind = "composite"
		}
		for _, a := range o.Args {
			name := a.Name
			switch {
			case a.Optional:
				name += "?"
			case a.Variadic:
				name += "..."
			}
			r.Args = append(r.Args, name)
		}
		rows = append(rows, r)
		t.cells = append(t.cells, []string{r.Name, r.Kind, strings.Join(r.Args, " "), r.Doc, strings.Join(r.Attrs, " ")})
	}
	t.rows = rows
	return t
}

// attributes are the names of an operator's attributes as its text has them.
func attributes(o *ir.Op) []string {
	out := []string{}
	if o.Attr == nil {
		return out
	}
	for _, f := range reflect.VisibleFields(o.Attr) {
		if name, _, _ := strings.Cut(f.Tag.Get("ir"), ","); name != "" {
			out = append(out, name)
		}
	}
	return out
}

type passRow struct {
	Name     string    `json:"name"`
	Doc      string    `json:"doc"`
	Required bool      `json:"required"`
	Rules    []ruleRow `json:"rules,omitempty"`
}

type ruleRow struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

// listPasses has a row for every place in the compile's order: some passes run twice. As text rules are listed under the first.
func listPasses() table {
	t := table{head: []string{"name", "what it does"}}
	var rows []passRow
	seen := make(map[string]bool)
	for _, p := range passes.List {
		r := passRow{Name: p.Name, Doc: p.Doc, Required: p.Required}
		t.cells = append(t.cells, []string{r.Name, r.Doc})
		for _, rule := range p.Rules {
			r.Rules = append(r.Rules, ruleRow{rule.Name, rule.Doc})
			if !seen[p.Name] {
				t.cells = append(t.cells, []string{"  " + rule.Name, "  " + rule.Doc})
			}
		}
		seen[p.Name] = true
		rows = append(rows, r)
	}
	t.rows = rows
	return t
}

type targetRow struct {
	Name         string `json:"name"`
	Cloud        string `json:"cloud,omitempty"` // Google Cloud's name of the slice
	Chips        int    `json:"chips"`
	Devices      int    `json:"devices"`
	Product      string `json:"product"`
	HBM          int64  `json:"hbm_bytes,omitempty"`            // a chip
	HBMUsable    int64  `json:"hbm_usable_bytes,omitempty"`     // a device, by programs
	HBMBandwidth int64  `json:"hbm_bytes_per_second,omitempty"` // a chip
	VMEM         int64  `json:"vmem_bytes,omitempty"`           // a core
	PeakBF16     int64  `json:"peak_bf16_flops,omitempty"`      // a chip
	PeakInt8     int64  `json:"peak_int8_ops,omitempty"`        // a chip
	PeakFP8      int64  `json:"peak_fp8_flops,omitempty"`       // a chip
	ICIBandwidth int64  `json:"ici_bytes_per_second,omitempty"` // a chip, both directions
}

func listTargets() table {
	t := table{head: []string{"name", "cloud name", "chips", "devices", "HBM a chip", "bandwidth", "bf16 peak a chip", "product"}}
	var rows []targetRow
	for _, e := range chip.List() {
		f := e.Target.Facts()
		r := targetRow{e.Target.String(), e.Cloud, e.Chips, e.Devices, f.Product, f.HBM, f.HBMUsable, f.HBMBandwidth, f.VMEM, f.PeakBF16, f.PeakInt8, f.PeakFP8, f.ICIBandwidth}
		rows = append(rows, r)
		cells := []string{r.Name, r.Cloud, fmt.Sprint(r.Chips), fmt.Sprint(r.Devices), "", "", "", r.Product}
		if e.Target.IsTPU() {
			cells[4], cells[5], cells[6] = tpuc.Bytes(r.HBM), tpuc.Bytes(r.HBMBandwidth)+"/s", fmt.Sprintf("%d TFLOPS", r.PeakBF16/1e12)
		}
		t.cells = append(t.cells, cells)
	}
	t.rows = rows
	return t
}

type pluginRow struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Licence  string `json:"licence"`
	SHA256   string `json:"sha256"` // of the library
	Size     int64  `json:"bytes"`
	Download int64  `json:"download_bytes"`
	Present  bool   `json:"present"`
	Path     string `json:"path"` // where it is or would be
	Usable   bool   `json:"usable"`
	Local    string `json:"local,omitempty"` // a library of the user's that goes before
}

func listPlugins(o plugin.Options) (table, error) {
	t := table{head: []string{"kind", "name", "version", "state", "licence", "path"}}
	list, err := plugin.List(o)
	if err != nil {
		return t, err
	}
	var rows []pluginRow
	for _, s := range list {
		r := pluginRow{string(s.Kind), s.Name, s.Version, s.Licence, s.Digest, s.Size, s.Fetch, s.Present, s.Path, s.Usable, s.Local}
		rows = append(rows, r)
		state := "fetched at first need, " + tpuc.Bytes(s.Fetch)
		switch {
		case s.Local != "":
			state = plugin.EnvLibrary + " goes before"
		case s.Present:
			state = "present"
		case !s.Usable:
			state = "not for this platform"
		}
		t.cells = append(t.cells, []string{r.Kind, r.Name, r.Version, state, r.Licence, r.Path})
	}
	t.rows = rows
	return t, nil
}

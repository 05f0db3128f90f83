package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tpuc"
	"tpuc/cache"
	"tpuc/internal/atomicfile"
	"tpuc/internal/plural"
)

// shownID is how much of an entry's ID is shown; 4 digits are enough to name one.
const shownID = 12

func newCache() *cobra.Command {
	f := &cacheFlags{}
	c := &cobra.Command{
		Use:   "cache ls|explain|verify|prune|export|import|path",
		Short: "Look into the cache of compiled programs, check it and clean it up",
		Long: `Look into the cache of compiled programs, check it and clean it up.

The cache keeps what plugins made of programs, and what tpuc made of models, by keys that name everything that these depend on
(docs/cache.md). All of it can be removed at any time.`,
		Example: `  tpuc cache ls
  tpuc cache explain model.pt2
  tpuc cache prune --max-size 10GB --older-than 30d`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			var verbs []string
			for _, v := range c.Commands() {
				verbs = append(verbs, v.Name())
			}
			return oneOf("command of cache", args[0], verbs)
		},
		Args: cobra.ArbitraryArgs, // an unknown command is an argument of this one
	}
	c.AddCommand(f.ls(), f.explain(), f.verify(), f.prune(), f.export(), f.doImport(), f.path())
	return c
}

// cacheFlags are those of the commands of cache.
type cacheFlags struct {
	compileFlags
	json bool
}

func (f *cacheFlags) add(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&f.cache, "cache", "", "folder for everything that is cached (default: $TPUC_CACHE, else tpuc in the user's cache folder)")
	addJSON(c, &f.json)
	return c
}

// open opens the cache; its warnings go to standard error.
func (f *cacheFlags) open(c *cobra.Command) (*tpuc.Cache, error) {
	return tpuc.OpenCache(tpuc.CacheOptions{Dir: f.cache, Explain: true, Notify: func(line string) { fmt.Fprintln(c.ErrOrStderr(), line) }})
}

// entryRow is an entry in a listing.
type entryRow struct {
	Kind  string       `json:"kind"`
	Key   string       `json:"key"`
	Bytes int64        `json:"bytes"`
	Used  time.Time    `json:"used"`
	Parts []cache.Part `json:"parts"`
	Error string       `json:"error,omitempty"` // what is wrong with it
}

func rowOf(i cache.Info) entryRow {
	r := entryRow{Kind: i.Key.Kind, Key: i.ID, Bytes: i.Size, Used: i.Used, Parts: i.Key.Parts}
	if r.Parts == nil {
		r.Parts = []cache.Part{}
	}
	if i.Damage != nil {
		r.Error = i.Damage.Error()
	}
	return r
}

func (f *cacheFlags) ls() *cobra.Command {
	var kind string
	c := &cobra.Command{
		Use:     "ls",
		Short:   "List the entries",
		Long:    "List the entries: programs that plugins compiled, models, what plugins say of themselves, and digests of files.",
		Example: "  tpuc cache ls\n  tpuc cache ls --kind program --json",
		Args:    argCount(0, "none"),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := f.open(c)
			if err != nil {
				return err
			}
			list, err := s.Store().List()
			t := table{head: []string{"kind", "key", "size", "last used", "what"}}
			rows := []entryRow{}
			size := int64(0)
			for _, i := range list {
				if kind != "" && i.Key.Kind != kind {
					continue
				}
				r := rowOf(i)
				rows, size = append(rows, r), size+i.Size
				t.cells = append(t.cells, []string{r.Kind, r.Key[:shownID], tpuc.Bytes(r.Bytes), r.Used.Format(time.DateTime), describeEntry(i)})
			}
			if f.json {
				return errors.Join(err, writeJSON(c.OutOrStdout(), rows))
			}
			if e := t.write(c.OutOrStdout()); e != nil {
				return e
			}
			_, e := fmt.Fprintf(c.OutOrStdout(), "%s, %s in %s\n", plural.Of(len(rows), "entry"), tpuc.Bytes(size), s.Store().Dir())
			return errors.Join(err, e)
		},
	}
	c.Flags().StringVar(&kind, "kind", "", "only entries of this kind: program, model, plugin or file")
	complete(c, "kind", func() []string { return tpuc.CacheKinds })
	return f.add(c)
}

// told are the parts that tell entries of a kind apart for people.
var told = []string{"name", "dims", "target", "topology", "platform", "arguments", "plugin", "processor", "machine", "file"}

// maxTold bounds what is told of an entry in a line.
const maxTold = 90

func describeEntry(i cache.Info) string {
	if i.Damage != nil {
		return "damaged: " + i.Damage.Error()
	}
	var out []string
	for _, name := range told {
		if v := i.Key.Value(name); v != "" {
			out = append(out, v)
		}
	}
	s := strings.Join(out, "; ")
	if len(s) > maxTold {
		s = s[:maxTold] + "..."
	}
	return s
}

func (f *cacheFlags) explain() *cobra.Command {
	c := &cobra.Command{
		Use:   "explain KEY|MODEL|KEY KEY",
		Short: "Say what an entry depends on, how two differ, or why a model would be compiled again",
		Long: `Say what an entry depends on, how two entries differ, or why a model would be compiled again.

A KEY is an entry's ID or its beginning, as tpuc cache ls shows it. Of a MODEL every program is named with what differs from
the nearest one in the cache, part by part with both values.`,
		Example: `  tpuc cache explain 024d6bc31f6d
  tpuc cache explain 024d6bc31f6d 9a80c55f1e02
  tpuc cache explain model.pt2 --target v6e:1x1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usagef("%s, wanted KEY, MODEL or KEY KEY", plural.Of(len(args), "argument"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			s, err := f.open(c)
			if err != nil {
				return err
			}
			a, err := s.Store().Lookup(args[0])
			if len(args) == 1 {
				if _, e := os.Stat(args[0]); e == nil {
					return f.explainModel(c, args[0])
				}
				if err != nil {
					return fmt.Errorf("%s is no file and no entry: %w", args[0], err)
				}
				return f.explainEntry(c.OutOrStdout(), a)
			}
			if err != nil {
				return err
			}
			b, err := s.Store().Lookup(args[1])
			if err != nil {
				return err
			}
			return f.explainTwo(c.OutOrStdout(), a, b)
		},
	}
	f.addTarget(c)
	addDims(c, &f.dims)
	c.Flags().Lookup("dim").Usage = sizesUsage
	addCustom(c, &f.custom)
	f.addEmbed(c)
	c.Flags().BoolVar(&f.offline, "offline", false, "ask nothing over the network; plugins must be on this machine")
	return f.add(c)
}

func (f *cacheFlags) explainModel(c *cobra.Command, model string) error {
	f.quiet = true
	plans, err := f.plans(c, []string{model})
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(c.OutOrStdout(), plans[0])
	}
	return writePlan(c.OutOrStdout(), plans[0])
}

func (f *cacheFlags) explainEntry(w io.Writer, i cache.Info) error {
	if f.json {
		return writeJSON(w, rowOf(i))
	}
	if i.Damage != nil {
		return fmt.Errorf("%s is damaged: %w", i.Path, i.Damage)
	}
	t := table{head: []string{i.Key.Kind, i.ID}}
	for _, p := range i.Key.Parts {
		if p.Value != "" {
			t.cells = append(t.cells, []string{p.Name, p.Value})
		}
	}
	return t.write(w)
}

func (f *cacheFlags) explainTwo(w io.Writer, a, b cache.Info) error {
	if f.json {
		differs := cache.Diff(a.Key, b.Key)
		if differs == nil {
			differs = []cache.Difference{}
		}
		return writeJSON(w, differs)
	}
	for _, d := range tpuc.Explain(a.Key, b.Key) {
		if _, err := fmt.Fprintln(w, d); err != nil {
			return err
		}
	}
	return nil
}

// verifyRow is what tpuc cache verify found.
type verifyRow struct {
	Entries    int               `json:"entries"` // that are good
	Bytes      int64             `json:"bytes"`
	Findings   []findingRow      `json:"findings"`
	Recompiled []tpuc.Recompiled `json:"recompiled,omitempty"`
}

type findingRow struct {
	Path     string `json:"path"`
	Problem  string `json:"problem"`
	Repaired string `json:"repaired,omitempty"`
}

func (f *cacheFlags) verify() *cobra.Command {
	var recompile, dry bool
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check every byte of every entry, and repair",
		Long: `Check every byte of every entry. What is damaged, and what has no business in the cache, is named and moved to quarantine; the other
entries are not touched. With --recompile every program is compiled again and compared too.

Exit status: 0 nothing was wrong; 1 something was.`,
		Example: "  tpuc cache verify\n  tpuc cache verify --dry-run --json\n  tpuc cache verify --recompile",
		Args:    argCount(0, "none"),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := f.open(c)
			if err != nil {
				return err
			}
			v, err := s.Store().Verify(c.Context(), !dry)
			if v == nil {
				return err
			}
			row := verifyRow{Entries: v.Entries, Bytes: v.Size, Findings: []findingRow{}}
			for _, x := range v.Findings {
				row.Findings = append(row.Findings, findingRow{x.Path, x.Problem.Error(), x.Repaired})
			}
			wrong := len(v.Findings)
			if recompile {
				e := s.Recompile(c.Context(), f.plugin(), "", func(r tpuc.Recompiled) {
					row.Recompiled = append(row.Recompiled, r)
					if r.Outcome == tpuc.RecompiledDiffers {
						wrong++
					}
				})
				err = errors.Join(err, e)
			}
			if e := f.writeVerification(c.OutOrStdout(), &row); e != nil {
				return e
			}
			if err == nil && wrong > 0 {
				err = fmt.Errorf("%s of the cache %s wrong", plural.Of(wrong, "entry"), plural.Choose(wrong, "was", "were"))
			}
			return err
		},
	}
	c.Flags().BoolVar(&recompile, "recompile", false, "compile every program again, with the plugins of this machine, and compare")
	c.Flags().BoolVar(&dry, "dry-run", false, "only name what is wrong")
	return f.add(c)
}

func (f *cacheFlags) writeVerification(w io.Writer, v *verifyRow) error {
	if f.json {
		return writeJSON(w, v)
	}
	var b strings.Builder
	for _, x := range v.Findings {
		fmt.Fprintf(&b, "%s: %s\n", x.Path, x.Problem)
		if x.Repaired != "" {
			fmt.Fprintf(&b, "  %s\n", x.Repaired)
		}
	}
	for _, r := range v.Recompiled {
		fmt.Fprintf(&b, "program %s  %s", r.Key[:shownID], r.Outcome)
		if r.Reason != "" {
			fmt.Fprintf(&b, ": %s", r.Reason)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s %s good, %s\n", plural.Of(v.Entries, "entry"), plural.Choose(v.Entries, "is", "are"), tpuc.Bytes(v.Bytes))
	_, err := io.WriteString(w, b.String())
	return err
}

func (f *cacheFlags) prune() *cobra.Command {
	var size, age string
	var all bool
	c := &cobra.Command{
		Use:   "prune --max-size SIZE|--older-than TIME|--all",
		Short: "Remove what was not used for longest",
		Long: `Remove entries until a size holds, those that were not used for longest first, and entries that were not used for some time. What is
being read or made stays.`,
		Example: "  tpuc cache prune --max-size 10GB\n  tpuc cache prune --older-than 30d\n  tpuc cache prune --all",
		Args:    argCount(0, "none"),
		RunE: func(c *cobra.Command, _ []string) error {
			l := cache.Limits{All: all}
			var err error
			if size == "" && age == "" && !all {
				return usagef("nothing says what to remove, wanted --max-size, --older-than or --all")
			}
			if size != "" {
				if l.MaxSize, err = parseBytes(size); err != nil {
					return err
				}
			}
			if age != "" {
				if l.OlderThan, err = parseAge(age); err != nil {
					return err
				}
			}
			s, err := f.open(c)
			if err != nil {
				return err
			}
			p, err := s.Store().Prune(c.Context(), l)
			if f.json {
				return errors.Join(err, writeJSON(c.OutOrStdout(), map[string]int64{"removed": int64(p.Removed), "removed_bytes": p.RemovedSize,
					"kept": int64(p.Kept), "kept_bytes": p.KeptSize, "leftovers": int64(p.Leftovers)}))
			}
			_, e := fmt.Fprintf(c.OutOrStdout(), "%s removed, %s; %d kept, %s\n", plural.Of(p.Removed, "entry"), tpuc.Bytes(p.RemovedSize), p.Kept, tpuc.Bytes(p.KeptSize))
			return errors.Join(err, e)
		},
	}
	c.Flags().StringVar(&size, "max-size", "", "keep at most so much, such as 500MB or 10GB")
	c.Flags().StringVar(&age, "older-than", "", "remove what was not used for so long, such as 12h or 30d")
	c.Flags().BoolVar(&all, "all", false, "remove everything")
	return f.add(c)
}

func (f *cacheFlags) export() *cobra.Command {
	c := &cobra.Command{
		Use:     "export FILE [KEY...]",
		Short:   "Write entries into one file for another machine",
		Long:    "Write all entries, or those named, into one tar file that tpuc cache import takes. Equal entries give equal files.",
		Example: "  tpuc cache export programs.tar\n  tpuc cache export one.tar 024d6bc31f6d",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("no file is given, wanted FILE [KEY...]")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			s, err := f.open(c)
			if err != nil {
				return err
			}
			if err := tpuc.CheckOutput(args[0]); err != nil {
				return err
			}
			var ids []string
			for _, key := range args[1:] {
				i, err := s.Store().Lookup(key)
				if err != nil {
					return err
				}
				ids = append(ids, i.ID)
			}
			n := 0
			err = atomicfile.Write(args[0], func(w io.Writer) (err error) {
				n, err = s.Store().Export(c.Context(), w, ids)
				return err
			})
			if err != nil {
				return err
			}
			return f.count(c.OutOrStdout(), "exported", n, 0)
		},
	}
	return f.add(c)
}

func (f *cacheFlags) doImport() *cobra.Command {
	c := &cobra.Command{
		Use:     "import FILE",
		Short:   "Take the entries of a file that export wrote",
		Long:    "Take the entries of a file that tpuc cache export wrote. Each is checked; what is damaged is named, and the good ones are kept.",
		Example: "  tpuc cache import programs.tar",
		Args:    argCount(1, "one FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := f.open(c)
			if err != nil {
				return err
			}
			if st, err := os.Stat(args[0]); err != nil {
				return err
			} else if !st.Mode().IsRegular() {
				return &fs.PathError{Op: "import", Path: args[0], Err: errors.New("no regular file")}
			}
			r, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer r.Close()
			done, err := s.Store().Import(c.Context(), r)
			return errors.Join(err, f.count(c.OutOrStdout(), "imported", done.Added, done.Present))
		},
	}
	return f.add(c)
}

// count prints what became of entries.
func (f *cacheFlags) count(w io.Writer, what string, n, present int) error {
	if f.json {
		return writeJSON(w, map[string]int{what: n, "present": present})
	}
	s := plural.Of(n, "entry") + " " + what
	if present > 0 {
		s += fmt.Sprintf(", %d %s there already", present, plural.Choose(present, "was", "were"))
	}
	_, err := fmt.Fprintln(w, s)
	return err
}

func (f *cacheFlags) path() *cobra.Command {
	c := &cobra.Command{
		Use:     "path",
		Short:   "Print where the cache is",
		Long:    "Print the folder that the entries are in. It may not exist yet.",
		Example: "  tpuc cache path",
		Args:    argCount(0, "none"),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := f.open(c)
			if err != nil {
				return err
			}
			if f.json {
				return writeJSON(c.OutOrStdout(), map[string]string{"path": s.Store().Dir()})
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), s.Store().Dir())
			return err
		},
	}
	return f.add(c)
}

// byteUnits are the units of sizes: decimal ones as tpuc prints them, and binary ones.
var byteUnits = []struct {
	name string
	size float64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}

// parseBytes reads such as "500MB".
func parseBytes(s string) (int64, error) {
	for _, u := range byteUnits {
		if n, ok := strings.CutSuffix(s, u.name); ok {
			var f float64
			if _, err := fmt.Sscanf(n+"\n", "%g\n", &f); err != nil || !(f > 0) || f*u.size >= 1<<62 {
				break
			}
			return int64(f * u.size), nil
		}
	}
	return 0, usagef("size %q, wanted a number and a unit such as 500MB or 10GB", s)
}

// parseAge reads a duration, with days too: "12h", "30d".
func parseAge(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n float64
		if _, err = fmt.Sscanf(days+"\n", "%g\n", &n); err == nil && n < 1e5 {
			d = time.Duration(n * 24 * float64(time.Hour))
		}
	}
	if err != nil || d <= 0 {
		return 0, usagef("time %q, wanted such as 12h or 30d", s)
	}
	return d, nil
}

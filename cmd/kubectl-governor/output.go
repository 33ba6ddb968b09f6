package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// Formats of -o. Text is for users; wide has more details.
const (
	formatText = "text"
	formatWide = "wide"
	formatName = "name"
	// The formats with a template are those of kubectl.
	formatJSONPath = "jsonpath="
	formatTemplate = "go-template="
)

// output is the flag -o.
type output struct {
	format string
	known  []string
	// template is the parsed template of the format, if it has one.
	template interface{ Execute(io.Writer, any) error }
}

// add adds the flag, with the formats of this command in addition to JSON and YAML.
func (o *output) add(cmd *cobra.Command, more ...string) {
	o.known = append([]string{formatText, "json", "yaml", formatJSONPath + "TEMPLATE", formatTemplate + "TEMPLATE"}, more...)
	cmd.Flags().StringVarP(&o.format, "output", "o", formatText, strings.Join(o.known, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.known, cobra.ShellCompDirectiveNoFileComp))
	before := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.parse(); err != nil {
			return err
		}
		return before(cmd, args)
	}
}

// parse reads the template of -o, or checks that the format is known.
func (o *output) parse() (err error) {
	if text, ok := strings.CutPrefix(o.format, formatJSONPath); ok {
		path := jsonpath.New("output").AllowMissingKeys(true)
		o.template = path
		if !strings.Contains(text, "{") {
			text = "{" + text + "}"
		}
		err = path.Parse(text)
	} else if text, ok := strings.CutPrefix(o.format, formatTemplate); ok {
		o.template, err = template.New("output").Parse(text)
	} else if !slices.Contains(o.known, o.format) {
		return fmt.Errorf("-o %s is not known: use %s", o.format, strings.Join(o.known, ", "))
	}
	if err != nil {
		return fmt.Errorf("-o %s cannot be read: %w", o.format, err)
	}
	return nil
}

func (o *output) wide() bool { return o.format == formatWide }

// people reports whether the format is for users, not programs.
func (o *output) people() bool { return o.format == formatText || o.format == formatWide }

// write prints the value as JSON or YAML, or calls text.
func (o *output) write(s *session, value any, text func()) error {
	if o.people() || o.format == formatName {
		text()
		return nil
	}
	raw, err := json.MarshalIndent(value, "", "  ")
	if o.template != nil {
		return o.fill(s, raw, err)
	}
	if o.format == "yaml" {
		raw, err = yaml.Marshal(value)
	}
	if err == nil {
		_, err = fmt.Fprintln(s.Out, strings.TrimRight(string(raw), "\n"))
	}
	return err
}

// fill prints the template, filled in with the fields as JSON has them.
func (o *output) fill(s *session, raw []byte, err error) error {
	var fields any
	if err == nil {
		err = utiljson.Unmarshal(raw, &fields)
	}
	if err == nil {
		err = o.template.Execute(s.Out, fields)
	}
	return err
}

// screen is a terminal.
type screen struct {
	// size returns its columns and rows.
	size func() (int, int, error)
	// colours reports whether colors are enabled.
	colours bool
}

// screenOf returns nil if the file is not a terminal.
func screenOf(file *os.File) *screen {
	fd := int(file.Fd())
	if !term.IsTerminal(fd) {
		return nil
	}
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	return &screen{size: func() (int, int, error) { return term.GetSize(fd) }, colours: !plain}
}

// tone is a color by its meaning.
type tone string

const (
	plain tone = ""
	good  tone = "\x1b[32m"
	fair  tone = "\x1b[33m"
	bad   tone = "\x1b[31m"
	faint tone = "\x1b[2m"
)

const untoned = "\x1b[0m"

// paint colors the text if colors are enabled.
func (s *session) paint(t tone, text string) string {
	if t == plain || text == "" || s.screen == nil || !s.screen.colours {
		return text
	}
	return string(t) + text + untoned
}

// cell is a cell of a table.
type cell struct {
	text string
	tone tone
}

func cells(texts ...string) []cell {
	row := make([]cell, len(texts))
	for i, text := range texts {
		row[i].text = text
	}
	return row
}

// table formats the rows with aligned columns.
func (s *session) table(rows [][]cell) []string {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		var line strings.Builder
		for i, c := range row {
			line.WriteString(s.paint(c.tone, c.text))
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+3))
			}
		}
		lines[n] = strings.TrimRight(line.String(), " ")
	}
	return lines
}

func (s *session) say(format string, args ...any) { _, _ = fmt.Fprintf(s.Out, format+"\n", args...) }

func (s *session) sayAll(lines []string) {
	if len(lines) > 0 {
		_, _ = io.WriteString(s.Out, strings.Join(lines, "\n")+"\n")
	}
}

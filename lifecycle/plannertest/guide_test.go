package plannertest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/governor-dev/governor/lifecycle/plannertest"
	"github.com/governor-dev/governor/test/fakeapp"
)

// faults are the names of all mistakes that a trial finds, as the package declares them.
func faults(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "subject.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if kind, ok := v.Type.(*ast.Ident); ok && kind.Name == "Fault" {
				names = append(names, strings.TrimPrefix(v.Names[0].Name, "Fault"))
			}
		}
		return true
	})
	return names
}

// The guide for authors has every fault, and what it shows of those that are made here is what the kit says.
func TestMistakesPageHasEveryFault(t *testing.T) {
	raw, err := os.ReadFile("../../docs/authoring/mistakes.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	all := faults(t)
	if len(all) < 14 {
		t.Fatalf("only the faults %q were found", all)
	}
	for _, name := range all {
		if !regexp.MustCompile("(?m)(^|`)" + name + "[:`]").MatchString(page) {
			t.Errorf("the guide has no %s", name)
		}
	}
	_, hasty := subject(fruitless()["Hasty"].planner).Survey(fakeapp.SmallWorlds(3))
	_, held := subject(impure()["Circle"].planner).Survey(fakeapp.SmallWorlds(3))
	for _, f := range []*plannertest.Finding{hasty, held} {
		said := f.Error()
		shown := regexp.MustCompile("(?s)```text kit\n(" + string(f.Fault) + ":.*?)\n```").FindStringSubmatch(page)
		if shown == nil || !strings.HasPrefix(flat(said), flat(shown[1])) {
			t.Errorf("the guide shows %q, and the kit says\n%s", shown, said)
		}
	}
}

func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

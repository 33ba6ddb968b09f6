package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/governor-dev/governor/lifecycle"
)

func TestRemedyOfAMessage(t *testing.T) {
	cases := map[string]struct {
		said  stall
		words []string // that the remedy is carried out with
		want  string   // part of the error
	}{
		"Version": {stall{"VersionRefused", "etcd 3.6 cannot be downgraded to 3.5: its data has the newer format. Set spec.version to 3.6 or newer, or restore a backup into a new cluster."}, []string{"3.6"}, ""},
		"Alarm": {stall{"AlarmRaised", "etcd-2 has raised CORRUPT. NOSPACE: raise spec.options.quota (and spec.storage.size), or compact and defragment; Governor then disarms the alarm. " +
			"CORRUPT: delete the volume of that member, and Governor replaces the member."}, []string{"etcd-2"}, ""},
		"Finalizer": {stall{"DeletionStuck", "etcd-0 cannot be started again: the PersistentVolumeClaim etcd-0-data is being deleted, and the finalizer a/b of another controller keeps it. " +
			"Let the owner of the finalizer finish, or remove it with kubectl edit; Governor then creates the object again."}, []string{"PersistentVolumeClaim", "etcd-0-data"}, ""},
		"Orphans": {stall{"NameTaken", "An earlier cluster of this name still runs: Pod etcd-0-0, StatefulSet etcd-0. Governor does not change it. Delete it, or give this object another name. Its volumes stay, and this object starts empty."}, []string{"Pod etcd-0-0, StatefulSet etcd-0"}, ""},
		"Foreign": {stall{"NameTaken", `Service "etcd" exists and was not made by Governor, or others removed its owner reference, which you can set again. It is left alone. Remove or rename it, or give this object another name.`}, []string{`Service "etcd"`, "Remove or rename"}, ""},
		"Grant":   {stall{"AuthEnabled", "As the user root, run: etcdctl user add etcd-client --no-password && etcdctl user grant-role etcd-client root"}, []string{"etcd-client", "etcd-client"}, ""},
		"Silent":  {stall{"VersionRefused", "etcd 3.6 cannot be downgraded to 3.5."}, nil, "names none of the remedies"},
		"Unknown": {stall{"Strange", "Set spec.version to 3.6."}, nil, "knows no remedy for the reason Strange"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, words, err := c.said.remedyOf()
			switch {
			case c.want != "":
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			case err != nil || r.do == nil || strings.Join(words[1:], "|") != strings.Join(c.words, "|"):
				t.Errorf("%q, %v", words, err)
			}
		})
	}
}

// Every reason with which the operator asks for a person has a remedy here, or is known to be out of the
// adversary's reach.
func TestEveryReasonHasARemedy(t *testing.T) {
	found := map[string]string{
		string(lifecycle.PodProblemImagePullBackOff): "hindered", string(lifecycle.PodProblemContainerCannotStart): "hindered",
		string(lifecycle.PodProblemUnschedulable): "hindered", string(lifecycle.PodProblemCrashLoopBackOff): "hindered", "DeletionStuck": "Obstacle.reason",
	}
	for _, pattern := range []string{"../../apps/etcd/*.go", "../../apps/memcached/*.go", "../../apps/podset/*.go", "../../engine/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		constants, blocks := map[string]string{}, []ast.Expr{}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					for i, name := range n.Names {
						if i < len(n.Values) {
							constants[name.Name] = literal(n.Values[i])
						}
					}
				case *ast.CallExpr:
					f, ok := n.Fun.(*ast.SelectorExpr)
					if local, is := n.Fun.(*ast.Ident); is && local.Name == "blocked" || ok && (f.Sel.Name == "Block" || f.Sel.Name == "Fail") {
						blocks = append(blocks, n.Args[0])
					}
				}
				return true
			})
		}
		for _, reason := range blocks {
			text := literal(reason)
			if name, ok := reason.(*ast.Ident); ok {
				text = constants[name.Name]
			}
			if text != "" {
				found[text] = pattern
			}
		}
	}
	if len(found) < 25 {
		t.Errorf("only %d reasons are found: %v", len(found), found)
	}
	for reason, where := range found {
		_, out := unreachable[reason]
		if _, known := remedies[reason]; known == out {
			t.Errorf("%s (%s): has a remedy: %v, is out of reach: %v", reason, where, known, out)
		}
	}
}

// literal is the text of a string literal; empty if the expression is none.
func literal(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(l.Value)
	return text
}

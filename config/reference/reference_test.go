package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const renew = "run go generate ./config"

func TestNamesAreUpToDate(t *testing.T) {
	page, err := names("../..")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page, read(t, "../../docs/reference/names.md")); diff != "" {
		t.Errorf("names.md is old, %s: %s", renew, diff)
	}
}

func TestAPIReferenceIsUpToDate(t *testing.T) {
	if testing.Short() {
		t.Skip("builds crd-ref-docs")
	}
	fresh := filepath.Join(t.TempDir(), "api.md")
	command := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../../tools/docs/go.mod", "crd-ref-docs", "--source-path=../../api",
		"--config=api.yaml", "--renderer=markdown", "--output-path="+fresh, "--log-level=ERROR")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if diff := cmp.Diff(read(t, fresh), read(t, "../../docs/reference/api.md")); diff != "" {
		t.Errorf("api.md is old, %s: %s", renew, diff)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

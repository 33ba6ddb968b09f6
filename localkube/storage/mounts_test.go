package storage

import (
	"os"
	"path/filepath"
	"testing"
)

func TestParseMount(t *testing.T) {
	for line, want := range map[string]mount{
		"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n": {id: 36, parent: 35, major: 98, path: "/mnt2"},
		"40 27 7:3 / /a\\040b rw shared:15 master:2 - ext4 /dev/loop3 rw\n":                {id: 40, parent: 27, major: 7, minor: 3, path: "/a b", peers: "15"},
		"22 27 0:21 / /proc rw - proc proc rw":                                             {id: 22, parent: 27, minor: 21, path: "/proc"},
	} {
		if got, err := parseMount(line); err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", line, got, err, want)
		}
	}
	if _, err := parseMount("nonsense"); err == nil {
		t.Error("no error for nonsense")
	}
}

func TestUnder(t *testing.T) {
	for path, want := range map[string]bool{
		"/a/b": true, "/a/b/c": true, "/a/b/.images/x.img (deleted)": true,
		"/a/bc": false, "/a": false, "/": false,
	} {
		if got := under("/a/b", path); got != want {
			t.Errorf("under(/a/b, %s) = %t", path, got)
		}
	}
}

func TestResolve(t *testing.T) {
	folder := resolve(t.TempDir())
	link := filepath.Join(folder, "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		link:                          folder,
		link + "/not-there":           filepath.Join(folder, "not-there"),
		folder + "/no/such":           filepath.Join(folder, "no/such"),
		folder + "/x/../not-there///": filepath.Join(folder, "not-there"),
	} {
		if got := resolve(path); got != want {
			t.Errorf("resolve(%s) = %s, want %s", path, got, want)
		}
	}
}

func TestCleanupRefusesTheWholeHost(t *testing.T) {
	if err := Cleanup("/"); err == nil {
		t.Error("no error")
	}
}

// A log and a witness built on Go's own packages: what they make must be accepted here, and the other way round.
//
// It reads one question as a line of JSON and answers with a line, or serves as a witness:
//
//	foreign
//	foreign witness ADDRESS PRIVATE_KEY LOG_KEY
package main

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type question struct {
	Do      string
	Name    string
	Text    string
	Note    string
	Keys    []string
	Secrets []string
	TimeS   uint64
	Entries []string
	Index   int64
	Old     int64
	Size    int64
	OldRoot tlog.Hash
	Root    tlog.Hash
	Proof   []tlog.Hash
}

type answer struct {
	Error   string
	Text    string      `json:",omitempty"`
	Signers []string    `json:",omitempty"`
	Unknown []string    `json:",omitempty"`
	Key     string      `json:",omitempty"`
	Secret  string      `json:",omitempty"`
	Roots   []tlog.Hash `json:",omitempty"`
	Proof   []tlog.Hash `json:",omitempty"`
}

func main() {
	if len(os.Args) == 5 && os.Args[1] == "witness" {
		serveWitness(os.Args[2], os.Args[3], os.Args[4])
		return
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var asked question
		found := answer{}
		err := json.Unmarshal(lines.Bytes(), &asked)
		if err == nil {
			err = found.fill(asked)
		}
		if err != nil {
			found.Error = err.Error()
		}
		line, _ := json.Marshal(found)
		fmt.Printf("%s\n", line)
	}
}

func (found *answer) fill(asked question) (err error) {
	switch asked.Do {
	case "make key":
		found.Secret, found.Key, err = note.GenerateKey(rand.Reader, asked.Name)
		return err
	case "open":
		return found.open(asked)
	case "sign":
		return found.sign(asked)
	case "grow":
		return found.grow(asked)
	case "check inclusion":
		leaf := tlog.RecordHash([]byte(asked.Entries[0]))
		return tlog.CheckRecord(asked.Proof, asked.Size, asked.Root, asked.Index, leaf)
	case "check consistency":
		return tlog.CheckTree(asked.Proof, asked.Size, asked.Root, asked.Old, asked.OldRoot)
	}
	return fmt.Errorf("unknown question %q", asked.Do)
}

func (found *answer) open(asked question) error {
	var known []note.Verifier
	for _, key := range asked.Keys {
		verifier, err := readVerifier(key)
		if err != nil {
			return err
		}
		known = append(known, verifier)
	}
	opened, err := note.Open([]byte(asked.Note), note.VerifierList(known...))
	if err != nil {
		return err
	}
	found.Text = opened.Text
	for _, each := range opened.Sigs {
		found.Signers = append(found.Signers, each.Name)
	}
	for _, each := range opened.UnverifiedSigs {
		found.Unknown = append(found.Unknown, each.Name)
	}
	return nil
}

func (found *answer) sign(asked question) error {
	var signers []note.Signer
	for _, secret := range asked.Secrets {
		signer, err := readSigner(secret, asked.TimeS)
		if err != nil {
			return err
		}
		signers = append(signers, signer)
	}
	signed, err := note.Sign(&note.Note{Text: asked.Text}, signers...)
	found.Text = string(signed)
	return err
}

// grow answers the root after each entry, and a proof: of an entry, or that the tree extends the old one.
func (found *answer) grow(asked question) (err error) {
	var stored []tlog.Hash
	read := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			hashes[i] = stored[index]
		}
		return hashes, nil
	})
	size := int64(len(asked.Entries))
	for n, entry := range asked.Entries {
		added, err := tlog.StoredHashes(int64(n), []byte(entry), read)
		if err != nil {
			return err
		}
		stored = append(stored, added...)
		root, err := tlog.TreeHash(int64(n)+1, read)
		if err != nil {
			return err
		}
		found.Roots = append(found.Roots, root)
	}
	if asked.Old > 0 {
		found.Proof, err = tlog.ProveTree(size, asked.Old, read)
	} else {
		found.Proof, err = tlog.ProveRecord(size, asked.Index, read)
	}
	return err
}

func readVerifier(key string) (note.Verifier, error) {
	parts := strings.SplitN(key, "+", 3)
	raw, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err == nil && len(raw) == 33 && raw[0] == typeCosignature {
		return &cosignatureVerifier{parts[0], ed25519.PublicKey(raw[1:])}, nil
	}
	return note.NewVerifier(key)
}

func readSigner(secret string, timeS uint64) (note.Signer, error) {
	parts := strings.SplitN(secret, "+", 5)
	raw, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err == nil && len(raw) == 33 && raw[0] == typeCosignature {
		return &cosigner{parts[2], ed25519.NewKeyFromSeed(raw[1:]), timeS}, nil
	}
	return note.NewSigner(secret)
}

package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A witness of one log, which forgets everything when it ends.
type witness struct {
	mutex  sync.Mutex
	secret string
	logKey note.Verifier
	size   int64
	root   tlog.Hash
}

func serveWitness(address, secret, logKey string) {
	verifier, err := note.NewVerifier(logKey)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	http.Handle("/add-checkpoint", &witness{secret: secret, logKey: verifier})
	log.Fatal(http.Serve(listener, nil))
}

func (w *witness) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(io.LimitReader(request.Body, 1<<20))
	if err != nil || request.Method != "POST" {
		http.Error(response, "a POST is expected", http.StatusBadRequest)
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	status, text := w.answer(string(body))
	if status == http.StatusConflict {
		response.Header().Set("Content-Type", "text/x.tlog.size")
	}
	response.WriteHeader(status)
	io.WriteString(response, text)
}

func (w *witness) answer(body string) (int, string) {
	head, signed, _ := strings.Cut(body, "\n\n")
	lines := strings.Split(head, "\n")
	old, err := strconv.ParseInt(strings.TrimPrefix(lines[0], "old "), 10, 64)
	if err != nil || !strings.HasPrefix(lines[0], "old ") {
		return http.StatusBadRequest, "no old size\n"
	}
	opened, err := note.Open([]byte(signed), note.VerifierList(w.logKey))
	if err != nil {
		return http.StatusForbidden, err.Error() + "\n"
	}
	checkpoint := strings.Split(opened.Text, "\n")
	if checkpoint[0] != w.logKey.Name() {
		return http.StatusNotFound, "unknown log\n"
	}
	size, err1 := strconv.ParseInt(checkpoint[1], 10, 64)
	root, err2 := tlog.ParseHash(checkpoint[2])
	if err1 != nil || err2 != nil || old > size {
		return http.StatusBadRequest, "no checkpoint\n"
	}
	if old != w.size {
		return http.StatusConflict, fmt.Sprintf("%d\n", w.size)
	}
	var proof tlog.TreeProof
	for _, line := range lines[1:] {
		raw, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(raw) != tlog.HashSize {
			return http.StatusBadRequest, "no proof\n"
		}
		var hash tlog.Hash
		copy(hash[:], raw)
		proof = append(proof, hash)
	}
	if old > 0 {
		if err := tlog.CheckTree(proof, size, root, old, w.root); err != nil {
			return http.StatusUnprocessableEntity, err.Error() + "\n"
		}
	}
	signer, err := readSigner(w.secret, uint64(time.Now().Unix()))
	if err != nil {
		return http.StatusInternalServerError, err.Error() + "\n"
	}
	cosigned, err := note.Sign(&note.Note{Text: opened.Text}, signer)
	if err != nil {
		return http.StatusInternalServerError, err.Error() + "\n"
	}
	w.size, w.root = size, root
	return http.StatusOK, strings.TrimPrefix(string(cosigned), opened.Text+"\n")
}

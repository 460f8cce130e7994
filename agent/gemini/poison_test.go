package gemini_test

import "time"

func listenForever() { time.Sleep(time.Hour) }

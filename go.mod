module ghostbot

go 1.26

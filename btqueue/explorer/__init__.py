"""`btqueue explore`: a page in the browser that redraws the models' curves while keys are turned.

`controls` says which keys a scenario has and which matter, `curves` answers, `messages` puts answers and the
picture of the network into words of JSON, `server` hands them to the page in the folder `page`.
"""

"""`btqueue explore`: a page in the browser that redraws the models' curves while keys are turned.

`controls` lists the keys of a scenario and ranks them, `curves` answers, `messages` puts answers and the
picture of the network into JSON, `server` hands them to the page in the folder `page`.
"""

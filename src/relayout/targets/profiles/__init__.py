"""What devices refuse or run slowly: profiles as values, shipped as files with sources"""
